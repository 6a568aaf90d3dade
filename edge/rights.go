package edge

import (
	"context"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
)

// rights is what the agent of a session may do, as its verbs were last held against it, and whom it may answer.
type rights struct {
	reviewed atomic.Pointer[reviewed]
	callers  atomic.Pointer[callers] // who may be answered, where a policy rules; nil while there is nobody
}

// authorizer holds what a session says against what its agent may do.
type authorizer struct{ *Session }

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
func (r authorizer) review() *reviewed {
	g, last := r.actor.grant(), r.rights.reviewed.Load()
	if last != nil && g == last.by {
		return last
	}
	now := &freely
	if g != &unbound {
		now = &reviewed{by: g}
	}
	if !r.rights.reviewed.CompareAndSwap(last, now) {
		return r.review() // another verb does it
	}
	if g.Grant == nil {
		return now
	}
	r.out.sender().Review(func(to agora.Address, kind agora.Kind) error {
		return r.mayGoOn(g, to, kind)
	}, func(to agora.Address, name string, err error) {
		r.conn.Notify(Notice{Kind: NoticeFault, To: to.Peer(), Stream: name, Err: agora.AsError(err)})
	})
	return now
}

// mayGoOn tells whether a stream that is open may go on.
func (r authorizer) mayGoOn(g *grant, to agora.Address, kind agora.Kind) error {
	switch {
	case to.IsSpace():
		return r.actor.mayEnter(policy.Publish, to.Space)
	case kind == agora.Reply && g.RefusesWhole(policy.Reply) == "":
		return nil // it had been asked when it began
	}
	return r.actor.forbidden(g.Refuses(policy.Send, string(to.Agent)), addressing, string(to.Agent))
}

// mayAddress tells whether the agent may say something to another: by a rule,
// or as its answer. The parts of a stream need no look: see review.
func (r authorizer) mayAddress(ctx context.Context, m *agora.Message) error {
	held, to := r.review(), m.To.Agent
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
			return r.actor.forbidden(no, addressing, string(to))
		}
		if m.To.IsBox() {
			return nil // a call of its own has named that
		}
		asked, err := r.hasAsked(ctx, to)
		if err != nil || asked {
			return err
		}
	}
	return r.actor.forbidden(why, addressing, string(to))
}
