package presence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/agora-relay/agora"
)

// What can become of a claim.
var (
	ErrExists     = errors.New("agent id is held")                        // by another live connection, or another principal
	ErrEnding     = errors.New("session is ending")                       // or a registration: finish it (Ending, Finished, Lapsed), then try again
	ErrOwned      = errors.New("agent id is registered by another")       // principal, without a connection
	ErrDeposed    = errors.New("claim was taken")                         // by a younger epoch, or its session is over
	ErrWrongToken = errors.New("resume token is not that of the session") // which continues for who presents none
	ErrUnsettled  = errors.New("an earlier holder is unsettled")          // Begin before every one of Claim.Unsettled is settled
)

// ClaimRequest is who wants an agent id, for whom, and with what right.
type ClaimRequest struct {
	Tenant    string
	Agent     agora.AgentID
	Principal string // who it is; only the same may take over or return
	Holder    Holder
	Conn      string // connection id
	Session   string // id for a new session
	Token     string // resume token for the session from now on
	Resume    string // resume token that the newcomer presents; may be empty

	// ResumeSession is the session that the newcomer knows as its own; may be empty. One that has begun since, or that
	// presence fell back to, numbers its messages differently: it is ended instead of resumed.
	ResumeSession string
	Dial          *Dialled    // how its edge has made the connection; nil where the agent has, or with Adopt
	Adopt         uint64      // epoch of a dialled session without an edge, whose connection is as it was: the one who claims it first has it; 0 for none
	Evict         uint64      // epoch of an incumbent found dead by a probe: taken over like a lost one; 0 none
	Card          agora.Agent // of a new session; a resumed one keeps its card until SetCard
}

// Claim is the right to an agent's id under an epoch.
type Claim struct {
	Agent     agora.AgentID
	Tenant    string
	Session   string // the running session's id when Resumed
	Epoch     uint64
	Resumed   bool
	Dialled   bool   // its edge has made the connection
	Incumbent *Past  // with ErrExists: who holds it; else nil
	Unsettled []Past // holders that have neither handed over nor lapsed, oldest first
}

// Past is a holder that a later claim deposes, or would.
type Past struct {
	Holder Holder
	Epoch  uint64
}

// claimTries bounds how often Claim starts over because the incumbent changed under it.
const claimTries = 8

// Claim takes the id. No session: a new one. Grace: the session is resumed by the same principal, unless that names
// another session, or none and this one never began, so that nobody was told of it (ErrEnding), or presents a token
// that is neither the session's last nor, as an answer may be lost, the one by which its last claim came
// (ErrWrongToken); else ErrExists. Registered without a connection by another principal: ErrOwned. Held under a lease
// that is gone: as in grace. Held under a live lease: taken over where the principal and either the resume token or
// Evict fit; else ErrExists, with the Incumbent. Grace over or ending: ErrEnding. No record, a token that does not fit,
// or none for a session that was written again (Reassert) as one that is away, while the server is not whole:
// UNAVAILABLE for ErrIncomplete. It is one round trip; two for an agent that was never seen (three on a Redis Cluster),
// and where the id is held and the incumbent's lease must be looked at; three where that is gone.
//
// The holder it takes the id from stays in Unsettled, dead or not, until Settle: nothing may be delivered before. A
// request whose answer was lost may be repeated as it is.
//
// With Dial, an AddressError where another agent of the tenant has the address, or one of any tenant has one of its
// Names: they are this one's as long as its session lasts, or until that is claimed with others or none. It takes one
// round trip more, and two for names. With Adopt, ErrDeposed where the session has another epoch by now, or is over;
// UNAVAILABLE for ErrIncomplete while the server is not whole. It takes one round trip more, too.
//
// With a card that says something, a FullError where Config.Cards has no room for it. It takes two round trips more.
func (s Sessions) Claim(ctx context.Context, r ClaimRequest) (Claim, error) {
	if r.Adopt != 0 { // its holder may not have told of it yet, where an earlier one has
		if err := s.sure(ctx); err != nil {
			return Claim{}, err
		}
	}
	if r.Dial == nil || r.Adopt != 0 {
		return s.claimCounted(ctx, r)
	}
	d := *r.Dial
	d.entry = r.Session
	r.Dial = &d
	was, err := s.dials.reserve(ctx, r.Tenant, r.Agent, r.Dial)
	if err != nil {
		return Claim{}, err
	}
	c, err := s.claimCounted(ctx, r)
	if err == nil && len(r.Dial.Names) > 0 {
		s.dials.namesOnly(ctx, r)
	}
	failed := []error{ErrExists, ErrEnding, ErrOwned, ErrWrongToken} // after any other error it may have been made
	if _, full := errors.AsType[*FullError](err); full || slices.ContainsFunc(failed, func(f error) bool { return errors.Is(err, f) }) {
		s.dials.unreserve(ctx, r.Tenant, r.Agent, r.Dial, was)
	}
	return c, err
}

// claimCounted is claim of a session whose card is counted.
func (s Sessions) claimCounted(ctx context.Context, r ClaimRequest) (Claim, error) {
	card, err := encodeCard(r.Card)
	if err != nil {
		return Claim{}, err
	}
	e, says := ofCard(ofSession, r.Tenant, r.Agent, r.Principal, card)
	if !says {
		return s.claim(ctx, r, card)
	}
	if err := s.cards.take(ctx, e, r.Adopt != 0); err != nil {
		return Claim{}, err
	}
	c, err := s.claim(ctx, r, card)
	s.cards.settle(ctx, e, err == nil && !c.Resumed) // one that continues has the card that it had
	return c, err
}

// claim is Claim of an address that is the agent's.
func (s Sessions) claim(ctx context.Context, r ClaimRequest, card storedCard) (Claim, error) {
	var dead uint64
	sure := false
	for n := 1; ; n++ {
		c, was, outcome, whole, err := s.tryClaim(ctx, r, card, dead, sure)
		if err != nil {
			return Claim{}, err
		}
		switch outcome {
		case "unsure":
			if err := s.surely(ctx, whole); err != nil {
				return Claim{}, err
			}
			sure = true
			continue
		case "exists":
			return c, ErrExists
		case "ending":
			return c, ErrEnding
		case "wrong":
			if sure {
				return c, ErrWrongToken
			}
			if err := s.surely(ctx, whole); err != nil { // the last holder may not have written it again yet
				return Claim{}, err
			}
			sure = true
			continue
		case "owned":
			return c, ErrOwned
		case "adopted":
			return c, ErrDeposed
		case "busy":
		default:
			c.Resumed, c.Incumbent = outcome == "resumed", nil
			c.Dialled = r.Dial != nil || r.Adopt != 0
			if was != nil && r.Adopt != 0 {
				s.dials.adopted(ctx, r, was)
			}
			if was != nil && r.Adopt == 0 && (r.Dial == nil || r.Dial.Address != was.Address) {
				s.dials.unreserve(ctx, r.Tenant, r.Agent, was, reserved{})
			}
			return c, nil
		}
		alive, err := s.leases.Alive(ctx, c.Incumbent.Holder)
		if err != nil {
			return Claim{}, err
		}
		if alive || n == claimTries {
			return c, ErrExists
		}
		dead = c.Incumbent.Epoch
	}
}

// tryClaim runs the claim script once, behind the indexes that will list what it decides. sure says that every edge has
// told what it holds: an agent without a record has no session. whole is whether that is so now.
func (s Sessions) tryClaim(ctx context.Context, r ClaimRequest, card storedCard, dead uint64, sure bool) (c Claim, was *Dialled, outcome string, whole bool, err error) {
	m := member(r.Tenant, r.Agent)
	k := keysOf(m, "")
	calls := []call{
		indexAdd(claimsKey(r.Holder), 0, m),
		list(r.Tenant, m),
	}
	if r.Dial != nil || r.Adopt != 0 {
		calls = append(calls, indexAdd(dialsKey(r.Holder), 0, m))
	}
	replies, err := s.runAll(ctx, append(calls,
		call{claimScript, []string{k.rec, k.unsettled, k.spaces, k.cancelled}, []any{
			agora.EncodeToken(r.Holder.Edge), agora.EncodeToken(r.Holder.Incarnation), r.Conn, r.Session,
			hashToken(r.Token), r.Principal, hashToken(r.Resume), r.Evict, dead, card.card, flag(sure), r.ResumeSession, card.detail,
			r.Dial.stored(), r.Dial.by(), r.Adopt,
		}},
		call{wholeScript, []string{wholeKey}, nil},
	))
	if err != nil {
		return Claim{}, nil, "", false, err
	}
	a := replies[len(calls)]
	return Claim{
		Agent: r.Agent, Tenant: r.Tenant,
		Session:   a.at(1).str(),
		Epoch:     a.at(2).uint(),
		Incumbent: &Past{Holder: parseHolder(a.at(3).str() + " " + a.at(4).str()), Epoch: a.at(5).uint()},
		Unsettled: a.at(6).pasts(),
	}, parseDial(a.at(7).str(), ""), a.at(0).str(), replies[len(calls)+1].yes(), nil
}

// hashToken keeps resume tokens out of Redis and its dumps; no token stays none.
func hashToken(t string) string {
	if t == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:16])
}

// pasts reads unsettled holders: pairs of epoch and holder.
func (r reply) pasts() []Past {
	var ps []Past
	for epoch, holder := range r.pairs {
		e, _ := strconv.ParseUint(epoch, 10, 64)
		ps = append(ps, Past{Holder: parseHolder(holder), Epoch: e})
	}
	slices.SortFunc(ps, func(a, b Past) int {
		if a.Epoch < b.Epoch {
			return -1
		}
		return 1
	})
	return ps
}

// Settle takes a past holder off the claim's unsettled set and returns those
// left. clean is false when it did not hand over: its lease was seen to be gone, after the
// claim was made. Then un-indexed streams of all earlier epochs can't go on (Record.Dirty),
// and positions are no longer clean. ErrDeposed when the claim is no longer c's.
func (s Sessions) Settle(ctx context.Context, c Claim, p Past, clean bool) (left []Past, err error) {
	k := c.keys()
	r, err := s.run(ctx, call{settleScript, []string{k.rec, k.unsettled}, []any{c.Epoch, p.Epoch, flag(clean)}})
	if err != nil {
		return nil, err
	}
	if !r.at(0).yes() {
		return nil, ErrDeposed
	}
	return r.at(1).pasts(), nil
}

// Unsettled reports whether a past holder of the claim is still to settle: one that can't
// be asked may have handed over by itself (HandedOver).
func (s Sessions) Unsettled(ctx context.Context, c Claim, p Past) (bool, error) {
	is, err := s.rdb.HExists(ctx, c.keys().unsettled, strconv.FormatUint(p.Epoch, 10)).Result()
	return is, unavailable(err)
}

// flag is a bool as scripts read it.
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
