package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/broker/scan"
)

// errOver means that the lane ended while it looked.
var errOver = errors.New("the lane ended")

const (
	recoveryPause    = 50 * time.Millisecond // before the lane asks again, growing
	recoveryPauseMax = time.Second
	recoveryPatience = 5 * time.Second // beyond Config.GiveUp, before what is in hand is refused: looking needs its turn, and answers
)

// recovery is the goroutine that asks the log where its lane stands. The lane sends nothing meanwhile.
type recovery struct {
	l      *Lane
	since  time.Time
	cancel context.CancelFunc
	why    error // that it has not worked yet; guarded by the lane's lock
}

// startRecovery starts a goroutine that asks the log where the lane stands; until it knows, the lane sends nothing.
// With only set, it looks at the fence first: if that has not moved, it sends the record in flight again as it is. The
// lock is held.
func (l *Lane) startRecovery(only bool) {
	if !l.hears(laneDoubts) {
		return
	}
	ctx, cancel := context.WithCancel(l.b.ctx)
	r := &recovery{l: l, since: time.Now(), cancel: cancel}
	l.recovery = r
	l.watch()
	l.b.wg.Go(func() {
		defer cancel()
		r.run(ctx, only)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tell()
	})
}

// run fences and reads the log, again and again until that has worked, the lane is over, or its Broker is.
func (r *recovery) run(ctx context.Context, only bool) {
	l := r.l
	select {
	case l.b.reads.lanes <- struct{}{}:
		defer func() { <-l.b.reads.lanes }()
	case <-ctx.Done():
		return
	}
	if only && r.resentBehindFence(ctx) {
		return
	}
	for pause := recoveryPause; ; pause = min(2*pause, recoveryPauseMax) {
		err := r.fenceAndRead(ctx)
		l.mu.Lock()
		r.why = err
		l.mu.Unlock()
		switch {
		case err == nil || errors.Is(err, errOver) || ctx.Err() != nil:
			return
		case errors.Is(err, jslog.ErrDeposed):
			l.mu.Lock()
			l.die()
			l.mu.Unlock()
			return
		case errors.Is(err, jslog.ErrMoved):
			pause = recoveryPause
		case errors.Is(err, jslog.ErrFull):
			l.suspend(err)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return
		}
	}
}

// die ends a lane that a younger epoch holds. The lock is held.
func (l *Lane) die() {
	if l.state.over() {
		return
	}
	l.b.count.deposed.Add(1)
	l.finish(laneIsDeposed)
	if deposed := l.cfg.Deposed; deposed != nil { // told behind the senders
		f := newBatch()
		f.items = append(f.items, item{done: func(Result) { deposed() }})
		l.completions.push(f)
	}
	l.tellLater()
}

// suspend refuses all messages of the lane, those it holds and those to come, until the log can be reached. The record
// in flight may be stored nevertheless: recovery settles that.
func (l *Lane) suspend(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failPending(err)
	l.tell()
}

// failPending is suspend. The lock is held.
func (l *Lane) failPending(err error) {
	if !l.hears(laneGivesUp) {
		return
	}
	l.b.cfg.Log.Warn("lane can't reach the log", "agent", l.cfg.From, "err", err)
	l.refuseAll(err)
	if l.ledger.LostTooMuch() {
		l.die()
	}
}

// resentBehindFence reports whether the fence is where the lane's records expect it: then the refusal was of the
// server's own making, and the record is on its way again.
func (r *recovery) resentBehindFence(ctx context.Context) bool {
	l := r.l
	l.mu.Lock()
	floor, at := l.history.last, time.Time{}
	if l.inflight != nil {
		at = l.inflight.validAt
	}
	l.mu.Unlock()
	stands, err := l.b.log.NothingEvicted(ctx, &l.at, floor, at)
	if err != nil || !stands {
		return false
	}
	f, err := l.b.log.FenceAt(ctx, l.at.Stream, l.fence.subject)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || f.Seq != l.fence.seq || l.state != laneRecovers || l.inflight == nil {
		return false
	}
	l.hears(laneLearns)
	l.recovery = nil
	l.b.count.retries.Add(1)
	l.publish(l.inflight)
	return true
}

// retryIfSafe sends the record again under its id, if the log must know that id should it be stored: a server that has
// started since knows those ids alone that still stand in its log. Where the mailbox may have overflowed meanwhile, the
// record may have been stored and be gone: its fate is unknown. floor is the last record of the lane before it.
func (l *Lane) retryIfSafe(id string, floor uint64, at time.Time) {
	ctx, cancel := context.WithTimeout(l.b.ctx, probeTime)
	defer cancel()
	var stands bool
	var err error
	select {
	case l.b.reads.lanes <- struct{}{}:
		stands, err = l.b.log.NothingEvicted(ctx, &l.at, floor, at)
		<-l.b.reads.lanes
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.inflight
	if f == nil || f.id != id || l.state != laneActive {
		return
	}
	f.asking = false
	switch {
	case err != nil:
		f.last = time.Now().Add(jslog.RetryPause - l.b.cfg.Retry)
	case stands:
		l.b.count.retries.Add(1)
		l.publish(f)
	default:
		l.startRecovery(false)
	}
}

// fenceAndRead makes the ledger complete: after the fence, no record of an earlier holder and none that this lane has
// in flight can be stored. So what is read then is final.
func (r *recovery) fenceAndRead(ctx context.Context) error {
	l := r.l
	seq, err := l.b.log.MoveFence(ctx, l.at.Stream, l.fence.subject, l.cfg.Epoch)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.state.over() {
		l.mu.Unlock()
		return errOver
	}
	l.fence.seq = seq
	s := scan.NewLaneScan(l.b.scanner, l.cfg.From, l.cfg.Session, l.cfg.To)
	s.Floor = l.history.last
	if !l.history.known {
		s.Torn = r.tear
	}
	if f := l.inflight; f != nil {
		if s.ID = f.id; f.reserved {
			l.ledger.Rollback()
			f.reserved = false
		}
	}
	l.mu.Unlock()
	if err := s.Run(ctx, r.fold); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.over() {
		return errOver
	}
	r.recovered(s)
	return nil
}

// fold adds one of the lane's records, found in the log, to the ledger.
func (r *recovery) fold(o record.Origin, seq uint64, parts []agora.Message) error {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.history.last {
		return nil
	}
	now := time.Now()
	for i := range parts {
		l.ledger.Fold(&parts[i], o.Epoch, now)
	}
	l.history.last = seq
	return nil
}

// tear notes in the ledger that records may be gone behind those that were folded.
func (r *recovery) tear() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.ledger.Tear()
}

// recovered settles what was in doubt by what a scan has found, and sends the next record. The lock is held.
func (r *recovery) recovered(s *scan.LaneScan) {
	l := r.l
	cut := s.Cut()
	if !l.history.known {
		l.history.known = true
		l.ledger.Inherit(ledger.Heritage{Open: l.cfg.Open, Dirty: l.cfg.Dirty, Cut: cut, Unsure: time.Now().Add(l.b.cfg.Duplicates), Aged: s.Aged})
	}
	if l.inflight != nil {
		f := l.landed()
		l.resolveInflight(f, s.Hit, !s.Alive && (cut || l.b.log.Forgets(f.validAt)))
	}
	l.ledger.Settle()
	l.hears(laneLearns)
	l.recovery = nil
	l.stuck.Store(false)
	l.advance()
	if l.ledger.OwesAborts() {
		l.watch()
	}
}

// resolveInflight settles a record of unknown fate: hit is where it stands, 0 when it is not stored and, behind the
// fence, never will be. forgotten says that it may have been stored and lost to retention since.
func (l *Lane) resolveInflight(f *batch, hit uint64, forgotten bool) {
	if hit != 0 {
		l.b.nudge(l.at, hit)
		l.b.count.records.Add(1)
		l.b.count.parts.Add(uint64(f.record.Parts()))
		l.answer(f, hit)
		return
	}
	if forgotten {
		for _, name := range f.aborts {
			l.ledger.DoubtEnd(name)
		}
	}
	until := time.Now().Add(l.b.cfg.Duplicates)
	back := newBatch() // what is to be stored again, in front of what has gathered meanwhile
	for i := range f.items {
		it, fate := &f.items[i], ledger.NotStored
		if forgotten && it.verdict.Store {
			fate = ledger.Forgotten
		}
		if fate == ledger.Forgotten && ledger.IsStreamPart(&it.m) && it.m.Part.Ends() {
			l.ledger.DoubtEnd(it.m.Stream)
		}
		if it.toldOff() {
			l.ledger.Resolve(&it.m, fate, until)
			continue
		}
		it.m.Again = it.m.Again || fate == ledger.Forgotten
		back.items = append(back.items, *it)
		l.queued += it.room
	}
	f.release()
	if len(back.items) > 0 {
		l.queue.pushFront(back)
	} else {
		back.release()
	}
}
