package presence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Holder is one life of an edge: its id and a random incarnation.
type Holder struct{ Edge, Incarnation string }

// TakenError is the error of a renewal that found the lease with another life of the edge.
type TakenError struct{ By Holder }

func (e *TakenError) Error() string {
	return fmt.Sprintf("another edge has the lease of %q", e.By.Edge)
}

// Leases is which edges are alive.
type Leases struct{ *backend }

// Renew writes the edge's lease, and lists the edge among those that sweeps
// look at. It says whether the lease had been there: false on the first time
// and when it had lapsed (then the edge re-asserts what it holds before it delivers
// anything). Where another life of the edge has it, it fails with a
// TakenError and writes no lease: unless that is the incarnation gone, whose lease is replaced. An edge
// that was killed leaves its lease behind, and two that run under one id must not share it.
func (s Leases) Renew(ctx context.Context, h Holder, gone string) (held bool, err error) {
	return s.renewed(ctx, h, s.renewal(h, gone))
}

// Extend is Renew of a lease that is there, and writes nothing where it has lapsed: who sends it may be dead, and taken
// for dead, by the time that it arrives.
func (s Leases) Extend(ctx context.Context, h Holder) (held bool, err error) {
	calls := s.renewal(h, "")
	calls[1] = s.renew(h, "", rand.Text(), true)
	return s.renewed(ctx, h, calls)
}

// renewed runs a renewal and reads its answer.
func (s Leases) renewed(ctx context.Context, h Holder, calls []call) (held bool, err error) {
	s.beats.sent(calls[1].args[2].(string))
	r, err := s.runAll(ctx, calls)
	if err != nil {
		return false, err
	}
	s.beats.answered(r[1], calls[1].args[2].(string))
	if r[1].at(0).int() == 2 {
		return false, &TakenError{By: Holder{Edge: h.Edge, Incarnation: r[1].at(1).str()}}
	}
	return r[1].at(0).yes(), nil
}

// Rollbacks counts the renewals that found an older one than the last that this Store has had an answer to: the server
// has lost what was written since. It read an older copy of its data when it started, or another server took its place.
func (s Leases) Rollbacks() uint64 { return s.beats.rollbacks.Load() }

// renewal is what Renew runs: the second call is renew.
func (s Leases) renewal(h Holder, gone string) []call {
	return []call{indexAdd(edgesKey, s.cfg.Lease, h.word()), s.renew(h, gone, rand.Text(), false)}
}

// renew is one renewal; word tells it from a repetition of itself, and only says that the lease must be there.
func (s Leases) renew(h Holder, gone, word string, only bool) call {
	return call{renewScript, []string{leaseKey(h.Edge), beatKey(h.Edge)},
		[]any{h.Incarnation, s.cfg.Lease.Milliseconds(), word, gone, flag(only)}}
}

// Resign gives the lease back, at the end of a drained edge. Claims that it
// still has go to grace at the next sweep.
func (s Leases) Resign(ctx context.Context, h Holder) error {
	_, err := s.runAll(ctx, []call{
		indexAdd(edgesKey, 0, h.word()),
		{releaseScript, []string{leaseKey(h.Edge)}, []any{h.Incarnation}},
	})
	return err
}

// Age tells how long ago a holder's lease was renewed last, by the server's clock, and whether it is there.
func (s Leases) Age(ctx context.Context, h Holder) (age time.Duration, alive bool, err error) {
	r, err := s.run(ctx, call{leaseAgeScript, []string{leaseKey(h.Edge), beatKey(h.Edge)}, []any{h.Incarnation}})
	if err != nil {
		return 0, false, err
	}
	return time.Duration(r.at(1).int()) * time.Millisecond, r.at(0).yes(), nil
}

// Alive reports whether a holder's lease is there.
func (s Leases) Alive(ctx context.Context, h Holder) (bool, error) {
	inc, err := s.rdb.Get(ctx, leaseKey(h.Edge)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && inc == h.Incarnation, unavailable(err)
}

// Edges returns the lives of edges that have a lease, or had one until a moment ago.
func (s Leases) Edges(ctx context.Context) ([]Holder, error) {
	words, err := s.rdb.ZRange(ctx, edgesKey, 0, -1).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	all := make([]Holder, len(words))
	for i, w := range words {
		all[i] = parseHolder(w)
	}
	return all, nil
}
