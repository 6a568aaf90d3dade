package edge

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/spaces"
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

// mayGoOn reports whether a stream that is open may go on.
func (o *outgoing) mayGoOn(g *grant, to agora.Address, kind agora.Kind) error {
	switch {
	case to.IsSpace():
		return o.actor.mayEnter(policy.Publish, to.Space)
	case kind == agora.Reply && g.RefusesWhole(policy.Reply) == "":
		return nil // it had been asked when it began
	}
	return o.actor.forbidden(g.Refuses(policy.Send, string(to.Agent)), addressing, string(to.Agent))
}

// mayAddress reports whether the agent may say something to another: by a rule,
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

// hasAsked reports whether an agent has said something to this one: recently, or in the session that it has now.
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

// authority is who an actor is, what the rules let it do, and how much it may say.
type authority struct {
	credentials *credentials              // by which it is judged
	principal   atomic.Pointer[Principal] // replaced as a whole when its credentials are renewed
	granted     atomic.Pointer[grant]     // what that may do by the rules; nil where there are none
	quota       admission.Quota           // what it may say
}

// Principal returns who the actor is, and what it may do now. It is not to be changed.
func (a *authority) Principal() *Principal { return a.principal.Load() }

// Check returns nil while the actor's credentials are good: UNAUTHORIZED when
// they have ended or were revoked, UNAVAILABLE when it is to connect again. It does not block.
func (a *authority) Check() error {
	p := a.Principal()
	if p == nil || p.link {
		return nil
	}
	if !p.Expires.IsZero() && !time.Now().Before(p.Expires) {
		return errExpired
	}
	if w, ok := a.credentials.verifier.(Warden); ok {
		return w.Revalidate(p)
	}
	return nil
}

var errExpired = agora.Errorf(agora.Unauthorized, "the credentials of this connection have ended")

// grant is what an actor may do, and the principal and the rules that follows from.
type grant struct {
	*policy.Grant // nil for everything
	who           *Principal
	rules         *policy.Rules
}

// unbound is the grant of all who are bound by neither rules nor claims.
var unbound grant

// grant returns what the actor may do now. It costs a few loads, unless rules or credentials have changed.
func (a *authority) grant() *grant {
	who, rules := a.Principal(), a.credentials.policy.Rules()
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
func (a *authority) forbidden(why, format string, what string) error {
	if why == "" {
		return nil
	}
	a.quota.Tenant().Refused.Add(1)
	return agora.Errorf(agora.Forbidden, format+": "+why, what)
}

// countConnection counts a connection for the actor's principal: RATE_LIMITED when that has too many, UNAVAILABLE when
// it holds too much. Principals without a name are nobody in particular, and not counted. Actors that were vouched for
// in the same words share one Principal from then on.
func (a *authority) countConnection(p *admission.Permit, slot *admission.Slot) error {
	who := a.Principal()
	if who == nil || who.Name == "" {
		return nil
	}
	shared, err := p.CountFor(who.Tenant, who.Name, who)
	if err != nil {
		return err
	}
	a.principal.Store(shared.(*Principal))
	return slot.Own(a.Owner(""))
}

// CountTogether has what the actor says count with all that is said so for its principal at this edge: that of
// requests, each of which has an actor of its own. Principals without a name are nobody in particular. It is called
// before the actor says anything.
func (a *authority) CountTogether() {
	if p := a.Principal(); p != nil && p.Name != "" {
		a.quota.CountTogether(agora.ToAgent(p.Tenant, agora.AgentID(reserved+p.Name)))
	}
}

// Owner returns the owner of what the actor holds as an agent, which may be none in particular.
func (a *authority) Owner(id agora.AgentID) admission.Owner {
	p := a.Principal()
	return admission.Owner{Tenant: p.Tenant, Principal: p.Name, Agent: id}
}

// as is the address of an agent in whose name the actor speaks.
func (a *authority) as(id agora.AgentID) agora.Address {
	return agora.ToAgent(a.Principal().Tenant, id)
}

const addressing = "agent %q may not be addressed"

// mayBe reports whether the actor may be an agent.
func (a *authority) mayBe(id agora.AgentID) error {
	if !a.Principal().May(id) {
		return a.forbidden("its credentials don't name it", "this principal may not be agent %q", string(id))
	}
	return a.forbidden(a.grant().Refuses(policy.Be, string(id)), "this principal may not be agent %q", string(id))
}

// maySee reports whether the actor may see the directory.
func (a *authority) maySee() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Directory), "%s may not be seen", "the directory")
}

// MayRelay returns FORBIDDEN where the actor may neither reserve a place at relays of libp2p nor be connected by them.
func (a *authority) MayRelay() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Relay), "%s may not be used", "the relay")
}

// mayEnter reports whether the actor may do something to a space.
func (a *authority) mayEnter(v policy.Verb, space string) error {
	why := a.refusesSpace(v, space)
	switch v {
	case policy.Join:
		return a.forbidden(why, "space %q may not be joined", space)
	case policy.Create:
		return a.forbidden(why, "space %q may not be created", space)
	}
	return a.forbidden(why, "nothing may be published into space %q", space)
}

func (a *authority) refusesSpace(v policy.Verb, space string) string {
	return a.grant().RefusesSpace(v, space, spaceType(space) == spaces.System)
}

// mayLook lets an actor look into the directory once: FORBIDDEN, RATE_LIMITED.
func (a *authority) mayLook() error {
	if err := errors.Join(a.maySee(), a.quota.Spend(0)); err != nil {
		return agora.AsError(err)
	}
	return nil
}

// MayAddress returns nil while the actor may send to an agent: for a door that knows already who that is. FORBIDDEN,
// and the errors of Check. It does not block.
func (a *authority) MayAddress(id agora.AgentID) error {
	if err := a.Check(); err != nil {
		return err
	}
	return a.forbidden(a.grant().Refuses(policy.Send, string(id)), addressing, string(id))
}

// MayDecide returns nil if the actor may decide what an agent asks approval for of another one, which is
// [agora.Cluster] where any operator will do; else FORBIDDEN. Who may be the addressee may, and who has the right to
// approve over the asker, which rules alone give; who may be nobody but the asker never may. Without authentication
// everybody may: then it is the door that knows, by the id that is claimed, who has asked.
func (a *authority) MayDecide(asker, to agora.AgentID) error {
	p := a.Principal()
	if p.Unverified {
		return nil
	}
	const deciding = "requests for approval of agent %q may not be decided"
	if sole, ok := p.Sole(); ok && sole == asker {
		return a.forbidden("they are its own", deciding, string(asker))
	}
	if to != agora.Cluster && to != asker && p.May(to) && a.grant().Refuses(policy.Be, string(to)) == "" {
		return nil
	}
	return a.forbidden(a.grant().Refuses(policy.Approve, string(asker)), deciding, string(asker))
}

// spaceType is the type of a space that is there.
func spaceType(space string) string {
	typ, err := spaces.Type(space)
	if err != nil {
		return spaces.Public
	}
	return typ
}

// Reconsider holds what runs against rules and limits that have changed: who may
// not be its agent any more is closed, and who may not be in a space leaves it. It returns at once.
func (n *Node) Reconsider() {
	n.background(func() {
		for _, s := range n.sessions.all() {
			s.reconsider()
		}
	})
}

// reconsider holds a session against what its agent may do now.
func (s *Session) reconsider() {
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
