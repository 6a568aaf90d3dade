package relay

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
)

// Post stores a whole message to an agent outside any lane: that of one who has no session anywhere. key is its idempotency key for
// the whole cluster. It blocks until the message is stored. AGENT_NOT_FOUND, AGENT_OFFLINE, RATE_LIMITED while the
// mailbox is nearly full, MESSAGE_TOO_LARGE, UNAVAILABLE. payer is the principal whose share of the log it takes; empty for none.
func (r *Relay) Post(ctx context.Context, payer, key string, m agora.Message) (seq uint64, err error) {
	if !m.To.IsBox() { // whose caller waits, or has its mailbox
		if err := r.Reach(ctx, m.To); err != nil {
			return 0, agora.AsError(err)
		}
	}
	seq, err = r.cfg.Broker.PublishFor(ctx, payer, key, m)
	if err != nil {
		return 0, agora.AsError(err)
	}
	r.Wrote(m.To)
	return seq, nil
}

// Reach returns nil when an agent can be written to outside any lane: it is known, and its mailbox is not nearly full. AGENT_NOT_FOUND,
// AGENT_OFFLINE, RATE_LIMITED, UNAVAILABLE.
func (r *Relay) Reach(ctx context.Context, to agora.Address) error {
	if r.cfg.Broker.Lost() {
		return logAway()
	}
	p := r.peer(to)
	if err := p.lookup(ctx); err != nil {
		return err
	}
	if p.pressed() {
		return errFull
	}
	return nil
}

// Pressed reports whether the mailbox of an agent is nearly full, or else whether the agent does not keep up with the streams of one who writes to it. It does not block.
func (r *Relay) Pressed(from agora.AgentID, to agora.Address) (full, slow bool) {
	p := r.peer(to)
	return p.pressed(), p.slows(from)
}

// Wrote notes a message that was stored for an agent outside any lane.
func (r *Relay) Wrote(to agora.Address) { r.peer(to).stored() }

var errFull = &agora.Error{Code: agora.RateLimited, Message: "the mailbox of the addressee is nearly full", RetryAfter: time.Second}

func logAway() *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: time.Second}
}
