package loadgen

import (
	"runtime"
	"sync"
	"time"
)

// nap is the longest sleep of a pacer: so soon it sees that it is to stop.
const nap = 20 * time.Millisecond

// pacer sends on some lines in turn, each message at the time that it is meant for. What can't be sent in
// time is sent as soon as it can be, and carries the time that it was meant for.
type pacer struct {
	lines []*line
	every float64 // nanoseconds between two messages
	begin int64   // when the first one is meant to be sent
	next  int64   // number of the message that is to be sent; the pacer's own
}

// meant returns when the k-th message is to be sent.
func (p *pacer) meant(k int64) int64 { return p.begin + int64(float64(k)*p.every) }

// run sends until it is to stop, and then what was meant for the time before that.
func (p *pacer) run(r *Run) {
	runtime.LockOSThread() // precise sleeps are a thread's own
	defer runtime.UnlockOSThread()
	sharpen()
	for !r.gaveUp.Load() {
		meant := p.meant(p.next)
		if r.stopped() && meant >= r.meter.until.Load() {
			return
		}
		if ahead := meant - now(); ahead > 0 {
			sleep(min(time.Duration(ahead), nap))
			continue
		}
		if r.meter.during(meant) {
			r.behind.note(r.behind.shard(0), meant, now())
		}
		p.lines[p.next%int64(len(p.lines))].send(r.meter, meant)
		p.next++
	}
}

// unsent returns the moments before the end at which messages were meant to be sent and were not.
func (p *pacer) unsent(end int64, f func(meant int64)) {
	for ; p.meant(p.next) < end; p.next++ {
		f(p.meant(p.next))
	}
}

// paced starts as many pacers as the machine can run at a time, each for its part of the lines.
func (r *Run) paced(wg *sync.WaitGroup) {
	begin, n := now()+int64(time.Millisecond), min(len(r.lines), 2*runtime.GOMAXPROCS(0))
	r.pacers = make([]*pacer, n)
	for i := range r.pacers {
		p := &pacer{begin: begin + int64(float64(i)*1e9/r.cfg.Rate)}
		for k := i; k < len(r.lines); k += n {
			p.lines = append(p.lines, r.lines[k])
		}
		p.every = 1e9 / r.cfg.Rate * float64(len(r.lines)) / float64(len(p.lines))
		r.pacers[i] = p
		wg.Go(func() { p.run(r) })
	}
}

// flatOut sends on every line as fast as what it has sent comes through.
func (r *Run) flatOut(wg *sync.WaitGroup) {
	for _, l := range r.lines {
		wg.Go(func() {
			for !l.dead.Load() && l.gate.pass(l.sent.Load(), int64(r.cfg.Window), int64(r.cfg.Burst), r.stop) && !r.stopped() {
				if d := l.pause.Load() - now(); d > 0 { // as it was asked to
					r.rest(time.Duration(d))
					continue
				}
				l.send(r.meter, now())
			}
		})
	}
}

// rest waits for a while, or until senders are to stop.
func (r *Run) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.stop:
	}
}
