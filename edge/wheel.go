package edge

import (
	"sync"
	"time"
)

// wheelSlots is how many ticks the wheel goes round in; timers further away
// stay in their slot for more than one round.
const wheelSlots = 256

// Wheel fires many coarse timers from one goroutine: heartbeats and time-outs
// of ten thousand quiet connections cost one wake-up a tick.
type Wheel struct {
	tick  time.Duration
	start time.Time
	stop  chan struct{}
	done  sync.WaitGroup

	mu     sync.Mutex // guards the fields below and the links of every timer
	now    int64      // the last tick that was served
	slots  [wheelSlots]Timer
	ready  Timer // due, their callbacks not called yet
	closed bool
}

// Timer is an entry of a [Wheel], part of what it is about: arming it again
// allocates nothing. The zero value with Fire set is ready to be added.
type Timer struct {
	Fire func() // called on the wheel's goroutine when the time is over: it must not block; it may add the timer again

	next, prev *Timer
	due        int64
}

// NewWheel starts a wheel that looks once a tick; one second if tick is zero.
func NewWheel(tick time.Duration) *Wheel {
	if tick <= 0 {
		tick = time.Second
	}
	w := &Wheel{tick: tick, start: time.Now(), stop: make(chan struct{})}
	for i := range w.slots {
		w.slots[i].reset()
	}
	w.ready.reset()
	w.done.Go(w.run)
	return w
}

// Add arms t, or arms it again: it fires once, not before d is over and at most
// a tick later. On a closed wheel it does nothing.
func (w *Wheel) Add(t *Timer, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.unlink()
	if w.closed {
		return
	}
	t.due = max(w.ticks(time.Since(w.start)+d+w.tick-1), w.now+1)
	w.slots[t.due%wheelSlots].push(t)
}

// Sooner arms t like Add, unless it is due before that already.
func (w *Wheel) Sooner(t *Timer, d time.Duration) {
	w.mu.Lock()
	armed := t.next != nil && t.due <= w.ticks(time.Since(w.start)+d+w.tick-1)
	w.mu.Unlock()
	if !armed {
		w.Add(t, d)
	}
}

// Remove disarms t. It does not wait: a callback that has begun may still run.
func (w *Wheel) Remove(t *Timer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.unlink()
}

// Close stops the wheel and waits for the callback that runs; none is called
// after it. Idempotent; never call it from a callback.
func (w *Wheel) Close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.stop)
	}
	w.mu.Unlock()
	w.done.Wait()
}

func (w *Wheel) run() {
	t := time.NewTicker(w.tick)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.turn(w.ticks(time.Since(w.start)))
		}
	}
}

func (w *Wheel) ticks(d time.Duration) int64 { return int64(d / w.tick) }

// turn fires what is due up to the tick.
func (w *Wheel) turn(tick int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// After a long sleep of the machine one round sees every slot.
	for at := max(w.now+1, tick-wheelSlots+1); at <= tick; at++ {
		w.collect(&w.slots[at%wheelSlots], tick)
	}
	w.now = max(w.now, tick)
	for w.ready.next != &w.ready && !w.closed {
		t := w.ready.next
		t.unlink()
		w.mu.Unlock()
		t.Fire()
		w.mu.Lock()
	}
}

// collect moves the slot's due timers to the ready ones.
func (w *Wheel) collect(slot *Timer, tick int64) {
	for t := slot.next; t != slot; {
		next := t.next
		if t.due <= tick {
			t.unlink()
			w.ready.push(t)
		}
		t = next
	}
}

// A list is a ring that begins and ends at a Timer of its own.

func (t *Timer) reset() { t.next, t.prev = t, t }

func (t *Timer) push(x *Timer) {
	x.next, x.prev = t, t.prev
	x.prev.next, t.prev = x, x
}

func (t *Timer) unlink() {
	if t.next == nil {
		return
	}
	t.next.prev, t.prev.next = t.prev, t.next
	t.next, t.prev = nil, nil
}
