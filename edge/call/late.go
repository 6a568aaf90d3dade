package call

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// An answer for which nobody waits any more goes to the mailbox of who asked: by the agent's own edge, as soon as that
// knows that nobody waits; what has come to the call's box before, or was on its way there, by the edge that has ended
// the call, and by that of a caller who waited nevertheless.

// handBackSoon hands the answer of a call back that nobody waits for, where it has come; else this edge looks once more
// after a while, as what was on its way to the box has come by then. Should this edge end before, another one looks.
func (r *Registry) handBackSoon(ctx context.Context, c presence.Call) error {
	found, err := r.handBack(ctx, c)
	if err != nil {
		return err
	}
	if !found {
		if err := r.cfg.Presence.Calls.LookAgain(ctx, r.cfg.Holder, []presence.Call{c}); err != nil {
			return err
		}
	}
	r.after(linger, pending{call: c, back: !found})
	return nil
}

// handBackLast is the last look.
func (r *Registry) handBackLast(ctx context.Context, c presence.Call) error {
	if _, err := r.handBack(ctx, c); err != nil {
		return err
	}
	return r.cfg.Presence.Calls.Looked(ctx, r.cfg.Holder, []presence.Call{c})
}

// handBackFor does what a dead edge was still to do.
func (r *Registry) handBackFor(ctx context.Context, dead presence.Holder, over []presence.Call) error {
	for _, c := range over {
		if err := r.handBackSoon(ctx, c); err != nil {
			return err
		}
		if err := r.cfg.Presence.Calls.Looked(ctx, dead, []presence.Call{c}); err != nil {
			return err
		}
	}
	return nil
}

// handBack puts an answer that has come, but was not taken, into the mailbox of who called, if that is an agent:
// marked, as nobody knows whether it was taken. Of a stream nothing is put there: who streams it was told to stop.
// found reports whether one has come.
func (r *Registry) handBack(ctx context.Context, c presence.Call) (found bool, err error) {
	box := r.cfg.Broker.Listen(agora.ToBox(c.Tenant, c.Box, c.From), broker.From{}, func() {})
	defer box.Close()
	for {
		msgs, err := box.Next(ctx, pullBytes)
		if err != nil || len(msgs) == 0 {
			return false, err
		}
		for i := range msgs {
			m := msgs[i]
			if m.Kind != agora.Reply || m.From != c.To || m.Part > agora.Start {
				continue
			}
			if m.Part == agora.Start {
				return true, nil
			}
			if known, err := r.cfg.Known(ctx, c.Tenant, c.From); !known {
				return err == nil, err
			}
			m.To, m.Again, m.N, m.ID, m.Session, m.Seq = agora.ToAgent(c.Tenant, c.From), true, 0, "", "", 0
			return true, r.stored(r.cfg.Broker.Publish(ctx, "call-back/"+c.Box, m))
		}
	}
}
