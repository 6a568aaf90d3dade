package edge

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
)

// rights is what the agent of a session may do, as its verbs were last held against it, and whom it may answer.
type rights struct {
	reviewed atomic.Pointer[reviewed]
	callers  atomic.Pointer[callers] // who may be answered, where a policy rules; nil while there is nobody
}

// reviewed is what a session's verbs were last held against. Nothing of it changes but to.
type reviewed struct {
	by *grant                        // by which open streams go on
	to atomic.Pointer[agora.AgentID] // whom by was found to let the agent address last
}

// freely is what those are held against who are bound by nothing.
var freely = reviewed{by: &unbound}

// review returns what the agent may do now. Where that has changed since it
// last spoke, streams to whom it may not address any more are ended, and told; so
// the parts of those that are open need no look.
func (o *outgoing) review() *reviewed {
	g, last := o.actor.grant(), o.rights.reviewed.Load()
	if last != nil && g == last.by {
		return last
	}
	now := &freely
	if g != &unbound {
		now = &reviewed{by: g}
	}
	if !o.rights.reviewed.CompareAndSwap(last, now) {
		return o.review() // another verb does it
	}
	if g.Grant == nil {
		return now
	}
	o.sender().Review(func(to agora.Address, kind agora.Kind) error {
		return o.mayGoOn(g, to, kind)
	}, func(to agora.Address, name string, err error) {
		o.conn.Notify(Notice{Kind: NoticeFault, To: to.Peer(), Stream: name, Err: agora.AsError(err)})
	})
	return now
}

// mayGoOn tells whether a stream that is open may go on.
func (o *outgoing) mayGoOn(g *grant, to agora.Address, kind agora.Kind) error {
	switch {
	case to.IsSpace():
		return o.actor.mayEnter(policy.Publish, to.Space)
	case kind == agora.Reply && g.RefusesWhole(policy.Reply) == "":
		return nil // it had been asked when it began
	}
	return o.actor.forbidden(g.Refuses(policy.Send, string(to.Agent)), addressing, string(to.Agent))
}

// mayAddress tells whether the agent may say something to another: by a rule,
// or as its answer. The parts of a stream need no look: see review.
func (o *outgoing) mayAddress(ctx context.Context, m *agora.Message) error {
	held, to := o.review(), m.To.Agent
	g := held.by
	if last := held.to.Load(); g.Grant == nil || m.Part == agora.Chunk || m.Part == agora.End || last != nil && *last == to {
		return nil
	}
	why := g.Refuses(policy.Send, string(to))
	if why == "" {
		held.to.Store(&to)
		return nil
	}
	if m.Kind == agora.Reply || m.Part == agora.Cancel {
		if no := g.RefusesWhole(policy.Reply); no != "" {
			return o.actor.forbidden(no, addressing, string(to))
		}
		if m.To.IsBox() {
			return nil // a call of its own has named that
		}
		asked, err := o.hasAsked(ctx, to)
		if err != nil || asked {
			return err
		}
	}
	return o.actor.forbidden(why, addressing, string(to))
}

// callers are the last agents that have said something to this one, by hashes that nobody outside can foretell.
type callers struct {
	mu   sync.Mutex // guards the fields below
	at   [64]uint64
	next uint8
}

// add adds a caller, unless it was the last one.
func (c *callers) add(h uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.at); c.at[(int(c.next)+n-1)%n] != h {
		c.at[c.next] = h
		c.next = (c.next + 1) % uint8(n)
	}
}

func (c *callers) has(h uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.at[:], h)
}

// heardFrom notes who has said something, so that it may be answered even if it has left meanwhile.
func (o *outgoing) heardFrom(id agora.AgentID) {
	if o.rights.callers.Load() == nil {
		o.rights.callers.CompareAndSwap(nil, new(callers))
	}
	o.rights.callers.Load().add(maphash.String(o.node.seed, string(id)))
}

// hasAsked tells whether an agent has said something to this one: of late, or in the session that it has now.
func (o *outgoing) hasAsked(ctx context.Context, id agora.AgentID) (bool, error) {
	if c := o.rights.callers.Load(); c != nil && c.has(maphash.String(o.node.seed, string(id))) {
		return true, nil
	}
	asked, err := o.node.cfg.Presence.Addressees.WroteTo(ctx, o.claim.Tenant, id, o.address())
	if err != nil {
		return false, agora.AsError(err)
	}
	if asked {
		o.heardFrom(id)
	}
	return asked, nil
}
