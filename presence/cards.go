package presence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// CardBound is how much of something there may be in all of the cluster; 0 stands for no bound.
type CardBound struct {
	Principal int64 // of one principal, beside its share of the whole
	Whole     int64 // of everybody
}

// CardBounds are how much agents may say of themselves, in all of the cluster. Of what other tenants don't hold of the
// whole a tenant may hold Tenant[0]/Tenant[1], and of that a principal Own[0]/Own[1] of what others of its tenant don't
// hold.
type CardBounds struct {
	Registrations CardBound // without a connection
	Bytes         CardBound // of cards, those of sessions and those of registrations, schemas included
	Tenant, Own   [2]int64
}

// FullError says that an agent may not say of itself what it does, as its principal, its tenant or everybody together
// hold as much as may be. To an agent it is RATE_LIMITED. Nothing was changed.
type FullError struct {
	Level string // which holds as much as it may: "principal", "tenant" or "cluster"
	Bytes bool   // the cards of its agents have as many bytes as they may; else it has as many registrations
}

func (e *FullError) Error() string {
	what := "registrations without a connection"
	if e.Bytes {
		what = "bytes of agents' cards"
	}
	return "this " + e.Level + " has as many " + what + " as it may"
}

// fullRetry is when it makes sense to try again what a FullError has refused.
const fullRetry = time.Second

// Unwrap returns the error as an agent may see it.
func (e *FullError) Unwrap() error {
	return &agora.Error{Code: agora.RateLimited, Message: e.Error(), RetryAfter: fullRetry}
}

// fullLevels are the levels by what the script of counting calls them.
var fullLevels = [...]string{"", "principal", "tenant", "cluster"}

// compareCards is how long an entry of the account may differ from what its agent's record bears out, where the edge
// that was to put it right has died.
const compareCards = 10 * time.Minute

// cards is the account of what agents say of themselves: an entry for each session with a card and each registration
// without a connection, by the principal that has it, and the sums of those. The account is an index: what counts is
// the agent's record. So an entry is written before the record is, and once more behind it, and is compared with the
// record when that may be over; a sweep compares all of them now and then. Every entry has a stamp, which is another
// one each time that it is written: a comparison changes no entry that was written meanwhile.
type cards struct{ *backend }

// What an entry of the account is for.
const (
	ofSession      = "s"
	ofRegistration = "r"
)

// agentOf returns whose entry it is.
func agentOf(field string) string {
	_, rest, _ := strings.Cut(field, " ")
	m, _, _ := strings.Cut(rest, " ")
	return m
}

// cardEntry is an entry of the account.
type cardEntry struct {
	field  string
	number int
	bytes  int
}

// ofCard returns the entry of a card, of a session or a registration; ok is false for a session's that says nothing,
// which has none.
func ofCard(kind, tenant string, id agora.AgentID, principal string, c storedCard) (e cardEntry, ok bool) {
	e = cardEntry{field: cardField(kind, member(tenant, id), principal), bytes: len(c.card) + len(c.detail)}
	if kind == ofRegistration {
		e.number = 1
	} else if c.isBare() {
		e.bytes = 0
	}
	return e, e.number+e.bytes > 0
}

// cardField names an entry. Anyone who has no name counts for each of its agents.
func cardField(kind, member, principal string) string {
	who := "-" + member
	if principal != "" {
		hash := sha256.Sum256([]byte(principal))
		who = hex.EncodeToString(hash[:16])
	}
	return kind + " " + member + " " + who
}

var cardKeys = []string{root + "{cards}", root + "{cards}:sums", root + "{cards}:due"}

// count writes an entry unless that is more than may be held, or whatever may be held.
func (s cards) count(e cardEntry, whatever bool) call {
	var b CardBounds
	if s.cfg.Cards != nil {
		b = s.cfg.Cards()
	}
	return call{cardCountScript, cardKeys, []any{
		e.field, e.number, e.bytes, compareCards.Milliseconds(), flag(whatever || s.cfg.Cards == nil), b.Tenant[0], b.Tenant[1], b.Own[0], b.Own[1],
		b.Registrations.Principal, b.Registrations.Whole, b.Bytes.Principal, b.Bytes.Whole,
	}}
}

// take counts what an agent is about to say of itself; a FullError where that is more than may be held. The caller
// calls settle behind it.
func (s cards) take(ctx context.Context, e cardEntry, whatever bool) error {
	r, err := s.run(ctx, s.count(e, whatever))
	if err != nil {
		return err
	}
	if what := r.at(0).int(); what != 0 {
		return &FullError{Level: fullLevels[min(r.at(1).uint(), 3)], Bytes: what == 2}
	}
	return nil
}

// settle says what became of a card that was taken: it stands, or its record tells.
func (s cards) settle(ctx context.Context, e cardEntry, stands bool) {
	if stands {
		s.keep(ctx, e)
	} else {
		s.compare(ctx, e.field)
	}
}

// keep says that the record bears out what was taken. Who was comparing meanwhile finds that.
func (s cards) keep(ctx context.Context, entries ...cardEntry) {
	calls := make([]call, len(entries))
	for i, e := range entries {
		calls[i] = s.count(e, true)
	}
	if _, err := s.runAll(ctx, calls); err != nil {
		s.log.Debug("cards were not counted again", "err", err)
	}
}

// compare has entries be as the records of their agents are. What fails is left to a sweep.
func (s cards) compare(ctx context.Context, fields ...string) {
	for chunk := range slices.Chunk(fields, batch) {
		if err := s.compareSome(ctx, chunk); err != nil {
			s.log.Debug("cards were not compared", "err", err)
			return
		}
	}
}

func (s cards) compareSome(ctx context.Context, fields []string) error {
	args := make([]any, len(fields))
	said := make([]call, len(fields))
	for i, f := range fields {
		args[i] = f
		said[i] = call{cardSaidScript, []string{recordOf(agentOf(f))}, nil}
	}
	entries, err := s.run(ctx, call{cardEntriesScript, cardKeys[:1], args})
	if err != nil {
		return err
	}
	records, err := s.runAll(ctx, said)
	if err != nil {
		return err
	}
	args = nil
	for i, f := range fields {
		if e, stamp := records[i].said(f), entries.at(i).str(); stamp != "" {
			stamp, _, _ = strings.Cut(stamp, " ")
			args = append(args, f, stamp, e.number, e.bytes)
		}
	}
	if len(args) > 0 {
		_, err = s.run(ctx, call{cardSetScript, cardKeys, args})
	}
	return err
}

// said returns an entry as the record of its agent bears it out, by what the script says of that.
func (r reply) said(field string) cardEntry {
	kind, m, i := field[:1], agentOf(field), 0
	if kind == ofRegistration {
		i = 2
	}
	e := cardEntry{field: field}
	if principal := r.at(i).str(); r.at(i+1).str() != "" && cardField(kind, m, principal) == field {
		e.bytes = int(r.at(i + 1).int())
		if kind == ofRegistration {
			e.number = 1
		}
	}
	return e
}

// sweep compares some of the entries that were not for long.
func (s cards) sweep(ctx context.Context) error {
	r, err := s.run(ctx, indexTake(cardKeys[2], 0, batch, compareCards))
	if err != nil {
		return err
	}
	_, due := r.due()
	fields := make([]string, len(due))
	for i, e := range due {
		fields[i] = e.member
	}
	s.compare(ctx, fields...)
	return nil
}
