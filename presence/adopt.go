package presence

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Orphan is a session whose connection its edge had dialled, and that may have no edge any more.
type Orphan struct {
	Tenant    string
	Agent     agora.AgentID
	Session   string
	Epoch     uint64
	Principal string
	Phase     Phase  // Active or InGrace
	Holder    Holder // while it is Active
	Offered   bool   // the holder gives it away
	Dial      Dialled
	Card      agora.Agent // without schemas

	seen entry // in the index of what is to be adopted; none where it was looked for by its name
}

// orphanFields are what Orphan is made of.
var orphanFields = []string{"state", "edge", "inc", "epoch", "session", "principal", "offered", "dial", "dial_by", "card", "since"}

// parseOrphan reads what a record has; false where its agent has no dialled session.
func parseOrphan(m string, r reply) (Orphan, bool) {
	tenant, id, ok := splitMember(m)
	d, phase := parseDial(r.at(7).str(), r.at(8).str()), phases[r.at(0).str()]
	if !ok || d == nil || phase != Active && phase != InGrace {
		return Orphan{}, false
	}
	return Orphan{
		Tenant: tenant, Agent: id, Session: r.at(4).str(), Epoch: r.at(3).uint(), Principal: r.at(5).str(), Phase: phase,
		Holder:  parseHolder(r.at(1).str() + " " + r.at(2).str()),
		Offered: r.at(6).str() == r.at(3).str(), Dial: *d,
		Card: decodeCard(id, storedCard{card: r.at(9).str()}, r.at(10).int()),
	}, true
}

// Find returns the dialled session of an agent; false where it has none.
func (s Dials) Find(ctx context.Context, tenant string, id agora.AgentID) (Orphan, bool, error) {
	m := member(tenant, id)
	r, err := s.fields(ctx, []entry{{member: m}}, orphanFields...)
	if err != nil {
		return Orphan{}, false, err
	}
	o, is := parseOrphan(m, r[0])
	if !is {
		return o, false, s.sure(ctx)
	}
	return o, true, nil
}

// Orphans returns at most n of those that are due to be looked at, oldest first: sessions without an edge, and some
// that have one again, for which the caller is to call Adopted. One round trip where there is none.
func (s Dials) Orphans(ctx context.Context, n int) ([]Orphan, error) {
	return s.listed(ctx, adoptKey, indexDue(adoptKey, 0, n), func(Orphan) bool { return true })
}

// listed returns the sessions that an index has for a question, and drops those that are not wanted there any more.
func (s Dials) listed(ctx context.Context, key string, due call, wanted func(Orphan) bool) ([]Orphan, error) {
	r, err := s.run(ctx, due)
	if err != nil {
		return nil, err
	}
	_, es := r.due()
	if len(es) == 0 {
		return nil, nil
	}
	records, err := s.fields(ctx, es, orphanFields...)
	if err != nil {
		return nil, err
	}
	var all []Orphan
	var stale []entry
	for i, e := range es {
		if o, is := parseOrphan(e.member, records[i]); is && wanted(o) {
			o.seen = e
			all = append(all, o)
		} else {
			stale = append(stale, e)
		}
	}
	if len(stale) > 0 {
		_, err = s.run(ctx, indexDel(key, anyAge, stale...))
	}
	return all, err
}

// Keep has nobody else look at an orphan for a while, and reports whether nobody else did so before. It gives no right
// to the session: see ClaimRequest.Adopt.
func (s Dials) Keep(ctx context.Context, o *Orphan, long time.Duration) (bool, error) {
	r, err := s.run(ctx, call{indexKeepScript, []string{adoptKey}, []any{o.seen.member, o.seen.score, long.Milliseconds()}})
	if err != nil || r.str() == "" {
		return false, err
	}
	o.seen.score = r.str()
	return true, nil
}

// Left has others look at an orphan again that the caller has kept, now.
func (s Dials) Left(ctx context.Context, o Orphan) error {
	r, err := s.run(ctx, call{indexKeepScript, []string{adoptKey}, []any{o.seen.member, o.seen.score, 0}})
	if err == nil && r.str() == "" {
		return nil // somebody else keeps it, or has adopted it
	}
	return err
}

// Adopted has nobody look at an orphan any more that has an edge again.
func (s Dials) Adopted(ctx context.Context, o Orphan) error {
	e := o.seen
	if e.member == "" {
		e.member = member(o.Tenant, o.Agent)
	}
	_, err := s.run(ctx, indexDel(adoptKey, anyAge, e))
	return err
}

// Offer gives a dialled session away: another edge may adopt it, while c's holder continues with it until it is asked
// to hand over. ErrDeposed when the claim is no longer c's.
func (s Dials) Offer(ctx context.Context, c Claim) error {
	if err := s.asHolder(ctx, call{offerScript, []string{c.keys().rec}, []any{c.Epoch}}); err != nil {
		return err
	}
	_, err := s.run(ctx, indexAdd(adoptKey, 0, member(c.Tenant, c.Agent)))
	return err
}

// Silent is a life of an edge, and how long ago it renewed its lease.
type Silent struct {
	Holder Holder
	Age    time.Duration
	Alive  bool // the lease is not over
}

// Holders returns the lives of edges, but for one, that hold dialled sessions, or did. Two round trips.
func (s Dials) Holders(ctx context.Context, but Holder) ([]Silent, error) {
	edges, err := s.leases.Edges(ctx)
	if err != nil {
		return nil, err
	}
	edges = slices.DeleteFunc(edges, func(h Holder) bool { return h == but })
	p := s.rdb.Pipeline()
	has := make([]*redis.IntCmd, len(edges))
	ages := make([]call, len(edges))
	for i, h := range edges {
		has[i] = p.Exists(ctx, dialsKey(h))
		ages[i] = call{leaseAgeScript, []string{leaseKey(h.Edge), beatKey(h.Edge)}, []any{h.Incarnation}}
	}
	if len(edges) == 0 {
		return nil, nil
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	var all []Silent
	var ask []call
	for i, h := range edges {
		if has[i].Val() > 0 {
			all, ask = append(all, Silent{Holder: h}), append(ask, ages[i])
		}
	}
	replies, err := s.runAll(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, r := range replies {
		all[i].Alive, all[i].Age = r.at(0).yes(), time.Duration(r.at(1).int())*time.Millisecond
	}
	return all, nil
}

// Forsaken lists the dialled sessions of a holder that is gone as orphans, as often as it is called.
func (s Dials) Forsaken(ctx context.Context, h Holder) error {
	members, err := s.rdb.ZRange(ctx, dialsKey(h), 0, -1).Result()
	if err != nil {
		return unavailable(err)
	}
	es := make([]entry, len(members))
	for i, m := range members {
		es[i].member = m
	}
	records, err := s.fields(ctx, es, orphanFields...)
	if err != nil {
		return err
	}
	var left []string
	var stale []entry
	for i, r := range records {
		if o, is := parseOrphan(members[i], r); is && o.Holder == h {
			left = append(left, members[i])
		} else {
			stale = append(stale, es[i])
		}
	}
	if err := s.listOrphans(ctx, left); err != nil || len(stale) == 0 {
		return err
	}
	_, err = s.run(ctx, indexDel(dialsKey(h), anyAge, stale...))
	return err
}

func (s Dials) listOrphans(ctx context.Context, members []string) error {
	var calls []call
	for chunk := range slices.Chunk(members, batch) {
		args := make([]any, len(chunk))
		for i, m := range chunk {
			args[i] = m
		}
		calls = append(calls, call{indexNewScript, []string{adoptKey}, args})
	}
	_, err := s.runAll(ctx, calls)
	return err
}
