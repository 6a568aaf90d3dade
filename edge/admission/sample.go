package admission

import (
	"context"
	"math"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

const (
	sampleEvery = 250 * time.Millisecond // between two samples of what the edge holds
	worthwhile  = 16 << 10               // bytes below which closing a connection frees nothing
)

// Run samples what is held until ctx is over.
func (s *Shedder) Run(ctx context.Context) {
	for pause.For(ctx, sampleEvery) {
		s.sample()
	}
}

// sampled is a slot that is looked at, and the connection that has it.
type sampled struct {
	slot *Slot
	conn Sheddable
}

// sample adds up what is held, and decides what is shed until the next sample.
func (s *Shedder) sample() {
	tally, closing := s.total()
	counted, over := tally.judge(s.cfg.Queued)
	total := tally.total()
	s.held.Store(total)
	s.full.Store(counted >= s.cfg.Queued)
	s.shrinkQueues(total)
	s.strangers.shrink()
	s.setReady(counted)
	s.shedParties(over)
	s.shedNewest(counted)
	s.closeNewest(counted - closing)
}

// total adds up what is held: beside connections, and for those that are active. Those
// that have come to rest are not sampled again. closing is held by connections that close already.
func (s *Shedder) total() (tally Tally, closing int64) {
	if s.cfg.Kept != nil {
		s.cfg.Kept(&tally)
	}
	active := s.takeActive()
	stay := active[:0]
	for _, at := range active {
		held, working := at.conn.Held()
		if held == 0 && !working && at.rests() {
			continue
		}
		stay = append(stay, at)
		tally.Add(at.slot.owner(), held)
		if at.slot.closed {
			closing += held
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range stay {
		s.active = append(s.active, at.slot)
	}
	return tally, closing
}

// owner is as whose counts what the connection holds.
func (s *Slot) owner() Owner {
	if s.party == nil {
		return Owner{}
	}
	return s.party.who
}

// rests takes a slot whose connection was seen to hold nothing off the active ones; false when
// it is to stay among them after all.
func (at sampled) rests() bool {
	at.slot.active.Store(false)
	// A connection that was marked active just before that is not noted, but holds by now what it was marked for.
	held, working := at.conn.Held()
	return held == 0 && !working || at.slot.active.Swap(true)
}

// takeActive returns the active slots, without those that no connection has any more.
func (s *Shedder) takeActive() []sampled {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := make([]sampled, 0, len(s.active))
	for _, slot := range s.active {
		if slot.conn != nil {
			active = append(active, sampled{slot, slot.conn})
		}
	}
	clear(s.active)
	s.active = s.active[:0]
	return active
}

// last returns the slots that were acquired last, up to n of them, the last one first.
func (s *Shedder) last(n int) []sampled {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last []sampled
	for slot := s.newest; slot != nil && len(last) < n; slot = slot.before {
		last = append(last, sampled{slot, slot.conn})
	}
	return last
}

// size returns how many slots are used.
func (s *Shedder) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// shrinkQueues shrinks the queues from half the limit on, so that what they hold
// together settles below it: to nearly nothing where it is reached.
func (s *Shedder) shrinkQueues(total int64) {
	share := int(min(max(2*FullShare-2*FullShare*total/s.cfg.Queued, 1), FullShare))
	if int64(share) == s.share.Swap(int64(share)) {
		return
	}
	if s.cfg.ShrinkQueues != nil {
		s.cfg.ShrinkQueues(share)
	}
}

// shedNewest decides which connections are shed: none at the limit, those that came last beyond
// it, and all of them where it is passed by half.
func (s *Shedder) shedNewest(total int64) {
	over, n := total-s.cfg.Queued, int64(s.size())
	if over <= 0 || n == 0 {
		s.shed.Store(math.MaxUint64)
		return
	}
	some := min(max(n*over/max(s.cfg.Queued/2, 1), 1), n)
	if last := s.last(int(some)); len(last) > 0 {
		s.shed.Store(last[len(last)-1].slot.number)
	}
}

// closeNewest closes connections where the limit is passed by half, the last ones
// first and no more of them than it takes; at one sample at most every second one.
func (s *Shedder) closeNewest(total int64) {
	over := total - s.cfg.Queued*3/2
	if over <= 0 {
		return
	}
	for _, at := range s.last((s.size() + 1) / 2) {
		if over <= 0 {
			return
		}
		if at.conn == nil || at.slot.closed {
			continue
		}
		held, _ := at.conn.Held()
		if held < worthwhile {
			continue
		}
		at.slot.closed = true
		s.count.Closed.Add(1)
		over -= held
		at.conn.Shed()
	}
}
