package presence

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// Listed is an agent as a directory has it, read only where somebody looks at it.
type Listed struct {
	ID    agora.AgentID
	card  string
	since int64
}

// Agent returns the agent's card, without schemas and the bytes of its registration.
func (l Listed) Agent() agora.Agent {
	a := decodeCard(l.ID, storedCard{card: l.card}, l.since)
	a.Status = agora.Online
	return a
}

// Same reports whether two say the same: the same card of the same session.
func (l Listed) Same(other Listed) bool { return l == other }

// Size is about how many bytes it takes.
func (l Listed) Size() int { return len(l.ID) + len(l.card) }

// listing are the fields of a record that report whether its agent is in the directory, and as what.
var listing = []string{"state", "card", "since", "reg_card", "reg_since"}

// listed reads listing: ok where the agent has a session, its grace included, or is registered without one. What it
// says in its session goes before what it said when it registered; one that says nothing of itself in its session is
// shown as it registered.
func (r reply) listed(id agora.AgentID) (l Listed, ok bool) {
	state, card := r.at(0).str(), r.at(1).str()
	lives := state == "1" || state == "2"
	registered := r.at(3).str()
	switch {
	case lives && (registered == "" || !(storedCard{card: card}).isBare()):
		return Listed{id, card, r.at(2).int()}, true
	case lives:
		return Listed{id, registered, r.at(2).int()}, true
	case registered != "" && state != "3":
		return Listed{id, registered, r.at(4).int()}, true
	}
	return Listed{}, false
}

// Directory is which agents of a tenant are there, and their cards.
type Directory struct {
	*backend
	cards cards
}

// Agents returns the light cards of all agents of a tenant that have a session, its
// grace included, or are registered without one, sorted by id. A round trip or two for every few hundred.
func (s Directory) Agents(ctx context.Context, tenant string) ([]agora.Agent, error) {
	all, err := s.list(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]agora.Agent, len(all))
	for i, l := range all {
		out[i] = l.Agent()
	}
	return out, nil
}

// list returns the directory of a tenant, sorted by id.
func (s Directory) list(ctx context.Context, tenant string) ([]Listed, error) {
	if err := s.sure(ctx); err != nil {
		return nil, err
	}
	found := map[agora.AgentID]Listed{}
	err := s.scan(ctx, agentsKey(tenant), func(es []entry) error {
		records, err := s.fields(ctx, es, listing...)
		if err != nil {
			return err
		}
		var stale, leaving []entry
		for i, r := range records {
			_, id, ok := splitMember(es[i].member)
			l, is := r.listed(id)
			if ok && is {
				found[id] = l
			}
			switch state := r.at(0).str(); {
			case state == "1":
			case state == "2", state == "3", is:
				leaving = append(leaving, es[i])
			default:
				stale = append(stale, es[i])
			}
		}
		if err := s.expect(ctx, leaving); err != nil {
			return err
		}
		return s.drop(ctx, agentsKey(tenant), stale)
	})
	out := make([]Listed, 0, len(found))
	for _, l := range found {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Listed) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// Agent returns the whole card of an agent of the directory; AGENT_NOT_FOUND where it is not there, UNAVAILABLE for
// ErrIncomplete rather than that while the server is not whole.
func (s Directory) Agent(ctx context.Context, tenant string, id agora.AgentID) (agora.Agent, error) {
	fields, err := s.rdb.HMGet(ctx, recordOf(member(tenant, id)), append(slices.Clone(listing), "detail", "reg_detail")...).Result()
	if err != nil {
		return agora.Agent{}, unavailable(err)
	}
	r := reply{fields}
	l, ok := r.listed(id)
	if !ok {
		if err := s.sure(ctx); err != nil {
			return agora.Agent{}, err
		}
		return agora.Agent{}, agora.UnknownAgent(id)
	}
	c := storedCard{l.card, r.at(5).str()}
	if l.card != r.at(1).str() {
		c.detail = r.at(6).str()
	}
	a := decodeCard(id, c, l.since)
	a.Status = agora.Online
	return a, nil
}

// Mark is how far a look at a tenant's directory has seen. The zero Mark has seen nothing.
type Mark struct {
	revision string
	at       int64 // by the server's clock, in ms
	moved    int64 // when the revision was seen to be another one
}

// Changes are what may have changed in a tenant's directory.
type Changes struct {
	All    bool            // Listed is all there is; else what neither Listed nor Gone names is as it was
	Listed []Listed        // in the directory
	Gone   []agora.AgentID // not, or not any more
}

// Changed returns what may have changed in a tenant's directory since a mark, and the next mark. Where nothing has, it
// is one round trip whatever the size of the directory. Who is listed may still be about to change: so it is told again
// for a while. UNAVAILABLE for ErrIncomplete while the server is not whole; who has found it so begins with the zero
// Mark again.
func (s Directory) Changed(ctx context.Context, tenant string, m Mark) (Changes, Mark, error) {
	settled := s.settled.Milliseconds()
	since := any("+inf") // all is read anyhow
	if m.at != 0 {
		since = max(0, m.at-settled)
	}
	r, err := s.run(ctx, call{changedScript, []string{agentsKey(tenant), revisionKey(tenant)}, []any{
		m.revision, since, flag(m.at-m.moved <= settled && m.at != 0),
	}})
	if err != nil {
		return Changes{}, m, err
	}
	next := Mark{revision: r.at(0).str(), at: r.at(1).int(), moved: m.moved}
	if next.revision != m.revision {
		next.moved = next.at
	}
	if m.at == 0 || born(next.revision) != born(m.revision) || next.at-m.at > settled-margin || next.at < m.at {
		all, err := s.list(ctx, tenant)
		next.moved = next.at
		return Changes{All: true, Listed: all}, next, err
	}
	members := r.at(2).list()
	es := make([]entry, len(members))
	for i, one := range members {
		es[i].member = one.str()
	}
	c, err := s.read(ctx, es)
	return c, next, err
}

// margin is by how much a comparison must come before what it compares with may have been dropped from the index.
const margin = 5000 // ms

// born is the part of a revision that says when the server began to count.
func born(revision string) string {
	begun, _, _ := strings.Cut(revision, " ")
	return begun
}

// Read returns how some agents stand in the directory. One pipeline for every few hundred.
func (s Directory) Read(ctx context.Context, tenant string, ids []agora.AgentID) (Changes, error) {
	es := make([]entry, len(ids))
	for i, id := range ids {
		es[i].member = member(tenant, id)
	}
	return s.read(ctx, es)
}

func (s Directory) read(ctx context.Context, es []entry) (c Changes, err error) {
	for chunk := range slices.Chunk(es, batch) {
		records, err := s.fields(ctx, chunk, listing...)
		if err != nil {
			return Changes{}, err
		}
		for i, r := range records {
			_, id, ok := splitMember(chunk[i].member)
			if !ok {
				continue
			}
			if l, is := r.listed(id); is {
				c.Listed = append(c.Listed, l)
			} else {
				c.Gone = append(c.Gone, id)
			}
		}
	}
	if len(c.Gone) > 0 { // what the server lacks may be what it has lost
		err = s.sure(ctx)
	}
	return c, err
}

// SetCard replaces the card of a running session of a principal, and reports whether it was another one. ErrDeposed
// when the claim is no longer c's; a FullError where Config.Cards has no room for it, and then the card stays as it
// was. Some round trips.
func (s Directory) SetCard(ctx context.Context, c Claim, principal string, card agora.Agent) (changed bool, err error) {
	v, err := encodeCard(card)
	if err != nil {
		return false, err
	}
	e, says := ofCard(ofSession, c.Tenant, c.Agent, principal, v)
	if says {
		if err := s.cards.take(ctx, e, false); err != nil {
			return false, err
		}
	}
	changed, err = s.setCard(ctx, c, v)
	s.cards.settle(ctx, e, says && err == nil)
	return changed, err
}

func (s Directory) setCard(ctx context.Context, c Claim, v storedCard) (changed bool, err error) {
	r, err := s.runAll(ctx, []call{
		list(c.Tenant, member(c.Tenant, c.Agent)),
		{cardScript, []string{c.keys().rec}, []any{c.Epoch, v.card, v.detail}},
	})
	if err != nil {
		return false, err
	}
	if r[1].str() == "0" {
		return false, ErrDeposed
	}
	return r[1].yes(), nil
}
