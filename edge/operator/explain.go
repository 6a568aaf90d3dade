package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// WhyQuery names messages. ID is the id of a frame, SESSION/N, or a position (seq).
type WhyQuery struct {
	ID     string
	Tenant string
	To     agora.AgentID // narrows the search to one mailbox: then little is read
	Space  string        // or to one space
	From   agora.AgentID // only what this agent sent
}

// Fates is the answer to a WhyQuery.
type Fates struct {
	Messages []Fate     `json:"messages"`
	Searched int        `json:"records_searched"`
	Whole    bool       `json:"whole"`                 // all that the log keeps was searched, or enough was found
	Oldest   *time.Time `json:"oldest_kept,omitempty"` // of what was searched
	Note     string     `json:"note,omitempty"`        // where nothing was found
}

// Fate is what became of a message.
type Fate struct {
	ID       string        `json:"id,omitempty"` // of its frame
	From     agora.AgentID `json:"from,omitempty"`
	To       agora.AgentID `json:"to,omitempty"`
	Space    string        `json:"space,omitempty"`
	Session  string        `json:"session,omitempty"` // of the sender, with N its number there
	N        uint64        `json:"n,omitempty"`
	Kind     string        `json:"kind"`
	Part     string        `json:"part"`
	StreamID string        `json:"stream_id,omitempty"`
	Seq      uint64        `json:"seq"`
	Bytes    int           `json:"bytes"`
	Trace    string        `json:"traceparent,omitempty"`
	Stored   StoredAt      `json:"stored"`
	State    string        `json:"state"` // waiting, written, acknowledged, cancelled, void, unknown
	Why      string        `json:"why"`
	Given    *GivenTo      `json:"delivered,omitempty"`
	Readers  []Reader      `json:"members,omitempty"` // of an event
}

// StoredAt is where a message stands in the log.
type StoredAt struct {
	Stream   string    `json:"stream"`
	Sequence uint64    `json:"sequence"`
	Index    int       `json:"index"` // in its record, of Parts
	Parts    int       `json:"parts"`
	At       time.Time `json:"at"`
	Kept     time.Time `json:"kept_to"` // when it is dropped at the latest
}

// GivenTo is the connection to which a message was written: some time between From and To.
type GivenTo struct {
	Edge string     `json:"edge"`
	Conn string     `json:"conn"`
	From time.Time  `json:"from"`
	To   *time.Time `json:"to,omitempty"` // missing while the connection lasts
}

// Reader is how far a member of a space is with an event.
type Reader struct {
	Agent agora.AgentID `json:"agent"`
	Has   bool          `json:"acknowledged"`
}

const (
	mostFates   = 20      // that one answer has
	mostRecords = 2000000 // of a stream that one question has read
)

// Why tells what became of messages: where they are stored, to which connection they were written and when, and whether
// they are acknowledged or wait, and why. It is derived from the log, the positions of readers and the short history of
// sessions. Without To or Space the whole log of the tenant is read. INVALID_REQUEST, UNAVAILABLE.
func (s *Service) Why(ctx context.Context, q WhyQuery) (Fates, error) {
	search, err := q.search()
	if err != nil {
		return Fates{}, err
	}
	found, err := s.broker.Find(ctx, search)
	if err != nil {
		return Fates{}, err
	}
	f := Fates{Messages: []Fate{}, Searched: found.Records, Whole: found.Whole, Oldest: some(found.Oldest)}
	if len(found.Stored) == 0 {
		f.Note = "the log keeps no such message: it was never stored (its sender was told so, or asked for no receipt), or retention or a purge has taken it"
		if !found.Whole {
			f.Note = "not found in what was searched in time: name its receiver"
		}
	}
	seen := map[agora.Address]*reading{}
	for i := range found.Stored {
		m := &found.Stored[i]
		if seen[m.Message.To] == nil {
			if seen[m.Message.To], err = s.reading(ctx, m.Message.To); err != nil {
				return f, err
			}
		}
		f.Messages = append(f.Messages, s.fate(m, seen[m.Message.To]))
	}
	return f, nil
}

// search is what the log is to be searched for.
func (q *WhyQuery) search() (broker.Search, error) {
	s := broker.Search{To: agora.Address{Tenant: q.Tenant, Agent: q.To, Space: q.Space}, Most: mostFates, Beyond: mostRecords}
	from := func(m *agora.Message) bool { return q.From == "" || m.From == q.From }
	if q.ID == "" {
		return s, agora.Errorf(agora.InvalidRequest, "name a message: the id of its frame, SESSION/N, or its seq")
	}
	if session, number, ok := strings.Cut(q.ID, "/"); ok {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n > 0 {
			s.Match = func(m *agora.Message) bool {
				return from(m) && (m.Session == session && m.N == n || m.ClientID() == q.ID)
			}
			return s, nil
		}
	}
	if seq, err := strconv.ParseUint(q.ID, 10, 53); err == nil && seq>>agora.SeqShift > 0 {
		s.Seq = seq
		return s, nil
	}
	s.Match = func(m *agora.Message) bool { return from(m) && m.ClientID() == q.ID }
	return s, nil
}

// reading is how the reader of a mailbox, or the members of a space, stand.
type reading struct {
	agent   AgentView
	sight   presence.Sight
	unknown bool
	space   []MemberView
}

func (s *Service) reading(ctx context.Context, to agora.Address) (*reading, error) {
	r := new(reading)
	var err error
	if to.IsSpace() {
		var v SpaceView
		v, err = s.InspectSpace(ctx, to.Tenant, to.Space)
		r.space = v.Members
	} else {
		r.agent, r.sight, err = s.viewAgent(ctx, to.Tenant, to.Agent)
	}
	if e := agora.AsError(err); err != nil && (e.Code == agora.AgentNotFound || e.Code == agora.SpaceNotFound) {
		r.unknown = true
		return r, nil
	}
	return r, err
}

// fate is what became of one message.
func (s *Service) fate(stored *broker.Stored, r *reading) Fate {
	m := &stored.Message
	f := Fate{
		ID: m.ClientID(), From: m.From, To: m.To.Agent, Space: m.To.Space, Session: m.Session, N: m.N,
		Kind: kindNames[m.Kind], Part: partNames[m.Part], StreamID: m.Stream, Seq: m.Seq, Bytes: len(m.Body), Trace: m.Meta.Trace,
		Stored: StoredAt{
			Stream: stored.Stream, Sequence: m.Seq >> agora.SeqShift, Index: int(m.Seq & (1<<agora.SeqShift - 1)), Parts: stored.Parts,
			At: stored.At.UTC(), Kept: stored.At.Add(s.maxAge).UTC(),
		},
	}
	switch {
	case stored.Void:
		f.State, f.Why = "void", "it was stored so long after its edge's lease was last known to hold that every reader skips it; its sender was given no receipt"
	case r.unknown:
		f.State, f.Why = "unknown", "its receiver is not known any more"
	case m.To.IsSpace():
		f.State, f.Why = r.event(&f)
	case r.cancelled(m):
		f.State, f.Why = "cancelled", "its receiver has cancelled the stream: nothing of it is delivered any more"
	default:
		f.State, f.Why = r.mail(&f)
	}
	return f
}

var (
	kindNames = map[agora.Kind]string{
		agora.Request: "send", agora.Reply: "reply", agora.Event: "event", agora.Roster: "roster",
		agora.Receipt: "receipt", agora.Control: "control", agora.Gap: "gap",
	}
	partNames = map[agora.Part]string{
		agora.Whole: "whole", agora.Start: "start", agora.Chunk: "chunk", agora.End: "end", agora.Cancel: "cancel", agora.Abort: "abort",
	}
)

func (r *reading) cancelled(m *agora.Message) bool {
	for _, c := range r.sight.Cancelled {
		if m.Stream != "" && c.Stream == m.Stream && c.Peer == m.From && c.Seq < m.Seq {
			return true
		}
	}
	return false
}

// event tells which members have an event.
func (r *reading) event(f *Fate) (state, why string) {
	has := 0
	for _, m := range r.space {
		f.Readers = append(f.Readers, Reader{m.Agent, m.Seq >= f.Seq})
		if m.Seq >= f.Seq {
			has++
		}
	}
	why = fmt.Sprintf("%d of the %d members there are now are known to have it, by positions that are written every few seconds", has, len(r.space))
	if has == len(r.space) {
		return "acknowledged", why
	}
	return "waiting", why
}
