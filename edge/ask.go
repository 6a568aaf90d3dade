package edge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// question is what one edge asks another about an agent.
type question struct {
	Verb   string        `json:"verb"` // "probe", "handover", "confirmed", "inspect", "kick", "evict", "end", "self" or "taken"
	Tenant string        `json:"tenant"`
	Agent  agora.AgentID `json:"agent"`
	Box    string        `json:"box,omitempty"` // taken: of the call
	Epoch  uint64        `json:"epoch"`         // probe, inspect, kick, evict, end: of the claim in question; handover: of the new claim
}

// reply is what it answers.
type reply struct {
	Live    *SessionStatus  `json:"live,omitempty"`    // inspect: the session, where it is here
	Self    *EdgeStatus     `json:"self,omitempty"`    // self
	Alive   bool            `json:"alive,omitempty"`   // probe: the agent gave a sign of life
	Leaving bool            `json:"leaving,omitempty"` // probe: the agent said goodbye, and the session is about to end
	Done    bool            `json:"done,omitempty"`    // handover: nothing of the agent is left here; kick, evict, end: it was
	Clean   bool            `json:"clean,omitempty"`   // handover: nothing was given up
	Cursor  uint64          `json:"cursor,omitempty"`  // confirmed: up to where the agent has read
	Slow    []agora.AgentID `json:"slow,omitempty"`    // confirmed: senders whose streams it does not keep up with
	Taken   int64           `json:"taken,omitempty"`   // taken: bytes of the answer that a caller here has taken
	Waits   bool            `json:"waits,omitempty"`   // taken: there is one
}

// answerName is the name under which one life of an edge is asked.
func answerName(h presence.Holder) string { return h.Edge + "." + h.Incarnation }

const (
	answerTime   = time.Second     // for what another edge has at hand
	handoverTime = 5 * time.Second // for one try of a hand-over; the asker tries again
)

// ask asks another edge, or this one.
func (n *Node) ask(ctx context.Context, h presence.Holder, q question) (reply, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(handoverTime, n.cfg.Probe)+time.Second)
	defer cancel()
	answer, err := n.cfg.Broker.Ask(ctx, answerName(h), body)
	if err != nil {
		return reply{}, err
	}
	var r reply
	return r, json.Unmarshal(answer, &r)
}

// answer answers another edge.
func (n *Node) answer(ctx context.Context, body []byte) []byte {
	var q question
	var r reply
	if err := json.Unmarshal(body, &q); err != nil {
		return []byte(`{}`)
	}
	at := agora.ToAgent(q.Tenant, q.Agent)
	switch q.Verb {
	case "probe":
		r.Alive = n.probed(ctx, at, q.Epoch)
		r.Leaving = !r.Alive && n.leaving(at, q.Epoch)
	case "inspect":
		r.Live = n.sessionStatus(at, q.Epoch)
	case "kick", "evict", "end":
		r.Done = n.endAsked(ctx, at, q.Epoch, endings[q.Verb])
	case "self":
		r.Self = n.edgeStatus()
	case "taken":
		r.Taken, r.Waits = n.calls.Taken(q.Tenant, q.Box)
	case "handover":
		r.Done, r.Clean = n.handOver(ctx, at, q.Epoch)
	case "confirmed":
		for _, s := range n.sessions.of(at, agora.MaxSeq) {
			r.Cursor = max(r.Cursor, s.read())
			if s.slow != nil && !s.ended() {
				r.Slow = append(r.Slow, s.slow()...)
			}
		}
	}
	answer, err := json.Marshal(r)
	if err != nil {
		return []byte(`{}`)
	}
	return answer
}

// probed tells whether the connection that holds an epoch gives a sign of life in time.
func (n *Node) probed(ctx context.Context, at agora.Address, epoch uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Probe*9/10) // the rest is for the answer
	defer cancel()
	for n.opening(at, epoch) {
		if !pause.For(ctx, 10*time.Millisecond) {
			return true // it has come just now
		}
	}
	s := n.sessions.under(at, epoch)
	return s != nil && s.probe(ctx)
}

// leaving tells whether the agent of an epoch has said goodbye.
func (n *Node) leaving(at agora.Address, epoch uint64) bool {
	s := n.sessions.under(at, epoch)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.goodbye
}

// handOver closes what this edge still holds of an agent from before an epoch.
func (n *Node) handOver(ctx context.Context, at agora.Address, epoch uint64) (done, clean bool) {
	ctx, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	clean = true
	for _, s := range n.sessions.of(at, epoch) {
		ok, err := s.handOver(ctx)
		if err != nil {
			return false, false
		}
		clean = clean && ok
	}
	return true, clean
}

// askConfirmed asks how far an agent has got with its mailbox.
func (n *Node) askConfirmed(ctx context.Context, to agora.Address, h presence.Holder) (relay.Confirmed, error) {
	r, err := n.ask(ctx, h, question{Verb: "confirmed", Tenant: to.Tenant, Agent: to.Agent})
	return relay.Confirmed{Cursor: r.Cursor, Slow: r.Slow}, err
}

// probeIncumbent asks for a sign of life of the connection that holds an id.
// An edge that does not answer is taken for dead: its lease still has to run out.
func (n *Node) probeIncumbent(ctx context.Context, c presence.Claim, tenant string, id agora.AgentID) reply {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Probe)
	defer cancel()
	r, err := n.ask(ctx, c.Incumbent.Holder, question{Verb: "probe", Tenant: tenant, Agent: id, Epoch: c.Incumbent.Epoch})
	if err != nil {
		return reply{}
	}
	return r
}
