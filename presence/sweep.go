package presence

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"
)

const (
	sweepLock  = 2 * time.Second // longest that one sweeper keeps the others out
	sweepEdges = 64              // dead edges looked at in one round
)

// Sweep does one round: claims of dead edges go to grace (dirty), sessions whose grace is over to ending. It returns
// the sessions that are ending, and without a session the registrations that are over (see [Registrations.Lapsed]),
// about max at most, for the caller to finish: others see them again only after a lease's time. Several edges may sweep
// at once; mostly one does, and the others return nothing; so do all while the server is not whole. It also drops what
// is stale in the indexes, a little each time. A few round trips when there is nothing to do, besides one for every few
// hundred agents of a dead edge.
func (s *Store) Sweep(ctx context.Context, h Holder, max int) ([]Claim, error) {
	return sweeper{s.backend, s.Leases, s.Dials, s.Calls, cards{s.backend}}.sweep(ctx, h, max)
}

// sweeper finds what dead edges and sessions that are over have left.
type sweeper struct {
	*backend
	leases Leases
	dials  Dials
	calls  Calls
	cards  cards
}

func (s sweeper) sweep(ctx context.Context, h Holder, max int) ([]Claim, error) {
	if whole, err := s.whole(ctx); err != nil || !whole {
		return nil, err
	}
	if err := s.tidy(ctx, h); err != nil {
		return nil, err
	}
	value := h.word() + " " + rand.Text()
	mine, err := s.rdb.SetNX(ctx, sweepKey, value, sweepLock).Result()
	if err != nil || !mine {
		return nil, unavailable(err)
	}
	err = s.bury(ctx)
	var out []Claim
	if err == nil {
		out, err = s.due(ctx, max)
	}
	if err == nil {
		err = s.cards.sweep(ctx)
	}
	// The lock ends by itself when giving it back fails.
	if _, e := s.run(ctx, call{releaseScript, []string{sweepKey}, []any{value}}); e != nil {
		s.log.Debug("sweep lock not given back", "err", e)
	}
	return out, err
}

// bury finds edges whose lease is gone and takes their claims.
func (s sweeper) bury(ctx context.Context) error {
	r, err := s.run(ctx, indexDue(edgesKey, 0, sweepEdges))
	if err != nil {
		return err
	}
	now, edges := r.due()
	for _, e := range edges {
		h := parseHolder(e.member)
		alive, err := s.leases.Alive(ctx, h)
		if err != nil {
			return err
		}
		if alive {
			continue
		}
		if err := s.buryEdge(ctx, h, e, now); err != nil {
			return err
		}
	}
	return nil
}

// buryEdge takes every claim of a dead edge. The edge stays listed for a while after its lease ended: a
// claim that it made in its last moment may still be on its way.
func (s sweeper) buryEdge(ctx context.Context, h Holder, e entry, now int64) error {
	end, _ := strconv.ParseInt(e.score, 10, 64)
	left := 0
	for {
		es, err := s.claimsOf(ctx, h, left)
		if err != nil {
			return err
		}
		if len(es) == 0 {
			break
		}
		gone, err := s.orphan(ctx, h, es, end, now)
		if err != nil {
			return err
		}
		left += len(es) - gone
	}
	if calls, err := s.calls.any(ctx, h); left > 0 || calls || err != nil {
		return err
	}
	gone, err := s.run(ctx, indexDel(edgesKey, s.settled, e))
	if err == nil && gone.int() > 0 {
		err = unavailable(s.rdb.Del(ctx, dialsKey(h)).Err()) // what it listed are orphans now
	}
	return err
}

// claimsOf returns a batch of a holder's claims, behind those that were left.
func (s sweeper) claimsOf(ctx context.Context, h Holder, from int) ([]entry, error) {
	zs, err := s.rdb.ZRangeWithScores(ctx, claimsKey(h), int64(from), int64(from+batch-1)).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	es := make([]entry, len(zs))
	for i, z := range zs {
		m, _ := z.Member.(string)
		es[i] = entry{m, strconv.FormatFloat(z.Score, 'f', -1, 64)}
	}
	return es, nil
}

// orphan moves claims of a holder without a lease to grace, from the end of the lease (0: from now). now is when its
// lease was seen to be gone. It drops them from the holder's index, and returns how many it dropped.
func (s sweeper) orphan(ctx context.Context, h Holder, es []entry, end, now int64) (int, error) {
	w := holderWords(h)
	// One that came back asserts its claims again: those since then, clocks of nodes allowed for, are its own.
	before := (now - s.cfg.Lease.Milliseconds()/2) * 1000
	calls := make([]call, len(es))
	for i, e := range es {
		args := []any{w[0], w[1], end, s.cfg.Grace.Milliseconds(), before}
		calls[i] = call{orphanScript, []string{recordOf(e.member)}, args}
	}
	replies, err := s.runAll(ctx, calls)
	if err != nil {
		return 0, err
	}
	var taken, others []entry
	var dialled []string
	due := map[int64][]string{}
	for i, r := range replies {
		over := r.at(0).int()
		if over != 0 && r.at(1).yes() {
			dialled = append(dialled, es[i].member)
		}
		if over == 0 {
			others = append(others, es[i])
			continue
		}
		taken = append(taken, es[i])
		due[over] = append(due[over], es[i].member)
	}
	// Due first: who dies in between leaves the claims listed.
	if err := s.expectAt(ctx, due, now); err != nil {
		return 0, err
	}
	if err := s.dials.listOrphans(ctx, dialled); err != nil {
		return 0, err
	}
	dropped, err := s.runAll(ctx, []call{
		indexDel(claimsKey(h), anyAge, taken...),
		indexDel(claimsKey(h), s.settled, others...),
	})
	if err != nil {
		return 0, err
	}
	return int(dropped[0].int() + dropped[1].int()), nil
}

// expectAt lists members as due at times of the server, which was at now a moment ago.
func (s sweeper) expectAt(ctx context.Context, due map[int64][]string, now int64) error {
	var calls []call
	for at, ms := range due {
		calls = append(calls, indexAdd(dueKey, time.Duration(at-now)*time.Millisecond, ms...))
	}
	_, err := s.runAll(ctx, calls)
	return err
}
