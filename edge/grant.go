package edge

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/spaces"
)

// grant is what an actor may do, and the principal and the rules that follows from.
type grant struct {
	*policy.Grant // nil for everything
	who           *Principal
	rules         *policy.Rules
}

// unbound is the grant of all who are bound by neither rules nor claims.
var unbound grant

// grant returns what the actor may do now. It costs a few loads, unless rules or credentials have changed.
func (a *Actor) grant() *grant {
	who, rules := a.Principal(), a.node.cfg.Policy.Rules()
	if rules == nil && who.Scope == nil || who.link {
		return &unbound
	}
	if g := a.granted.Load(); g != nil && g.who == who && g.rules == rules {
		return g
	}
	g := &grant{grantBy(rules, who), who, rules}
	a.granted.Store(g)
	return g
}

// forbidden is FORBIDDEN: what may not be done, and which rule says so.
func (a *Actor) forbidden(why, format string, what string) error {
	if why == "" {
		return nil
	}
	a.quota.Tenant().Refused.Add(1)
	return agora.Errorf(agora.Forbidden, format+": "+why, what)
}

// mayBe tells whether the actor may be an agent.
func (a *Actor) mayBe(id agora.AgentID) error {
	if !a.Principal().May(id) {
		return a.forbidden("its credentials don't name it", "this principal may not be agent %q", string(id))
	}
	return a.forbidden(a.grant().Refuses(policy.Be, string(id)), "this principal may not be agent %q", string(id))
}

// maySee tells whether the actor may see the directory.
func (a *Actor) maySee() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Directory), "%s may not be seen", "the directory")
}

// MayRelay returns FORBIDDEN where the actor may neither reserve a place at relays of libp2p nor be connected by them.
func (a *Actor) MayRelay() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Relay), "%s may not be used", "the relay")
}

// mayEnter tells whether the actor may do something to a space.
func (a *Actor) mayEnter(v policy.Verb, space string) error {
	why := a.refusesSpace(v, space)
	switch v {
	case policy.Join:
		return a.forbidden(why, "space %q may not be joined", space)
	case policy.Create:
		return a.forbidden(why, "space %q may not be created", space)
	}
	return a.forbidden(why, "nothing may be published into space %q", space)
}

func (a *Actor) refusesSpace(v policy.Verb, space string) string {
	return a.grant().RefusesSpace(v, space, spaceType(space) == spaces.System)
}

// rights is what the agent of a session may do, as its verbs are held against it.
type rights struct {
	*binding
	out      *outgoing // whose streams are ended that may not go on
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
func (r *rights) review() *reviewed {
	g, last := r.actor.grant(), r.reviewed.Load()
	if last != nil && g == last.by {
		return last
	}
	now := &freely
	if g != &unbound {
		now = &reviewed{by: g}
	}
	if !r.reviewed.CompareAndSwap(last, now) {
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
func (r *rights) mayGoOn(g *grant, to agora.Address, kind agora.Kind) error {
	switch {
	case to.IsSpace():
		return r.actor.mayEnter(policy.Publish, to.Space)
	case kind == agora.Reply && g.RefusesWhole(policy.Reply) == "":
		return nil // it had been asked when it began
	}
	return r.actor.forbidden(g.Refuses(policy.Send, string(to.Agent)), addressing, string(to.Agent))
}

const addressing = "agent %q may not be addressed"

// mayAddress tells whether the agent may say something to another: by a rule,
// or as its answer. The parts of a stream need no look: see review.
func (r *rights) mayAddress(ctx context.Context, m *agora.Message) error {
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
func (r *rights) heardFrom(id agora.AgentID) {
	if r.callers.Load() == nil {
		r.callers.CompareAndSwap(nil, new(callers))
	}
	r.callers.Load().add(maphash.String(r.node.seed, string(id)))
}

// hasAsked tells whether an agent has said something to this one: of late, or in the session that it has now.
func (r *rights) hasAsked(ctx context.Context, id agora.AgentID) (bool, error) {
	if c := r.callers.Load(); c != nil && c.has(maphash.String(r.node.seed, string(id))) {
		return true, nil
	}
	asked, err := r.node.cfg.Presence.Addressees.WroteTo(ctx, r.claim.Tenant, id, r.address())
	if err != nil {
		return false, agora.AsError(err)
	}
	if asked {
		r.heardFrom(id)
	}
	return asked, nil
}

// Reconsider holds what runs against rules and limits that have changed: who may
// not be its agent any more is closed, and who may not be in a space leaves it. It returns at once.
func (n *Node) Reconsider() {
	n.background(func() {
		for _, s := range n.sessions.all() {
			member{s}.reconsider()
		}
	})
}

// reconsider holds a session against what its agent may do now.
func (s member) reconsider() {
	if s.actor.grant().Grant == nil {
		return
	}
	if err := s.actor.mayBe(s.claim.Agent); err != nil {
		s.conn.Close(Reason{Cause: Refused, Code: agora.Forbidden, Text: agora.AsError(err).Message})
		return
	}
	for _, name := range s.cursor.spaces() {
		err := s.actor.mayEnter(policy.Join, name)
		if err == nil {
			continue
		}
		s.leave(s.node.ctx, name) // should it fail, the agent is a member still, and gets nothing here
		s.conn.Notify(Notice{Kind: NoticeFault, To: agora.ToSpace(s.claim.Tenant, name), Err: agora.AsError(err)})
	}
}

// spaceType is the type of a space that is there.
func spaceType(space string) string {
	typ, err := spaces.Type(space)
	if err != nil {
		return spaces.Public
	}
	return typ
}
