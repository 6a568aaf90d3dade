package edge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// question is what one edge asks another about an agent.
type question struct {
	Verb   string        `json:"verb"` // "probe", "handover", "confirmed", "inspect", "kick", "evict", "end", "self", "taken" or "rebalance"
	Tenant string        `json:"tenant"`
	Agent  agora.AgentID `json:"agent"`
	Box    string        `json:"box,omitempty"`   // taken: of the call
	Epoch  uint64        `json:"epoch"`           // probe, inspect, kick, evict, end: of the claim in question; handover: of the new claim
	Moves  int           `json:"moves,omitempty"` // rebalance: agents to move
	Rate   int           `json:"rate,omitempty"`  // rebalance: of them a second
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
	Moves   int             `json:"moves,omitempty"`   // rebalance: agents that are being moved
}

// answerName is the name under which one life of an edge is asked.
func answerName(h presence.Holder) string { return h.Edge + "." + h.Incarnation }

// answerTime bounds what another edge has at hand.
const answerTime = time.Second

// edges asks other edges, or this one. Every error may be broker.ErrNoEdge, where nobody is there.
type edges struct {
	broker   *broker.Broker
	presence *presence.Store
	probe    time.Duration // see [Config.Probe]
}

// ask asks a question of one life of an edge.
func (e *edges) ask(ctx context.Context, h presence.Holder, q question) (reply, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(ownership.HandoverTime, e.probe)+time.Second)
	defer cancel()
	answer, err := e.broker.Ask(ctx, answerName(h), body)
	if err != nil {
		return reply{}, err
	}
	var r reply
	return r, json.Unmarshal(answer, &r)
}

// askOf asks about the session of an agent under an epoch.
func (e *edges) askOf(ctx context.Context, verb string, h presence.Holder, at agora.Address, epoch uint64) (reply, error) {
	return e.ask(ctx, h, question{Verb: verb, Tenant: at.Tenant, Agent: at.Agent, Epoch: epoch})
}

// Ping is that of [ownership.Peers], like the next three.
func (e *edges) Ping(ctx context.Context, h presence.Holder) error {
	_, err := e.broker.Ask(ctx, answerName(h), []byte(`{}`))
	return err
}

func (e *edges) Probe(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (alive, leaving bool, err error) {
	r, err := e.askOf(ctx, "probe", h, at, epoch)
	return r.Alive, r.Leaving, err
}

func (e *edges) HandOver(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (done, clean bool, err error) {
	r, err := e.askOf(ctx, "handover", h, at, epoch)
	return r.Done, r.Clean, err
}

func (e *edges) End(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64, why ownership.Ending) error {
	_, err := e.askOf(ctx, string(why), h, at, epoch)
	return err
}

// askConfirmed asks how far an agent has got with its mailbox.
func (e *edges) askConfirmed(ctx context.Context, to agora.Address, h presence.Holder) (relay.Confirmed, error) {
	r, err := e.ask(ctx, h, question{Verb: "confirmed", Tenant: to.Tenant, Agent: to.Agent})
	return relay.Confirmed{Cursor: r.Cursor, Slow: r.Slow}, err
}

// askTaken asks the edges at which callers wait for the answer in a box how much of it they have taken.
func (e *edges) askTaken(ctx context.Context, box agora.Address) (bytes int64, waits bool, err error) {
	holders, err := e.presence.Calls.Waiters(ctx, box.Tenant, box.Space)
	if err != nil {
		return 0, false, err
	}
	for _, h := range holders {
		r, failed := e.ask(ctx, h, question{Verb: "taken", Tenant: box.Tenant, Box: box.Space})
		if failed != nil {
			err = failed
			continue
		}
		bytes, waits = max(bytes, r.Taken), waits || r.Waits
	}
	if waits {
		err = nil
	}
	return bytes, waits, err
}

var _ ownership.Peers = (*edges)(nil)
