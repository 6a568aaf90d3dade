package demux

import (
	"time"

	"github.com/agora-relay/agora/edge"
)

const (
	pullBytes  = 64 << 10 // about what one pull brings
	firstDelay = 100 * time.Millisecond
	lastDelay  = 2 * time.Second
)

// Wake has the session pulled from. It does not block, and may be called at any time.
func (d *Demux) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session.Load() == nil { // Begin wakes
		return
	}
	d.again = true
	if !d.pumping && !d.closed {
		d.pumping = true
		d.background(d.pump)
	}
}

// pump pulls while there is something: of a quiet mailbox no goroutine is left.
func (d *Demux) pump() {
	for d.goOn() {
		d.settle(d.drain())
	}
}

// goOn reports whether the pump has something to do; it ends if not.
func (d *Demux) goOn() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pumping = d.again && !d.closed
	d.again = false
	return d.pumping
}

// settle has the pump run again in a moment where it met an error.
func (d *Demux) settle(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil || d.closed {
		d.delay = 0
		return
	}
	d.delay = min(max(2*d.delay, firstDelay), lastDelay)
	d.retry = time.AfterFunc(d.delay, d.Wake)
	d.cfg.Log.Debug("pull failed", "retry", d.delay, "err", err)
}

// drain hands on what the session has until it has nothing.
func (d *Demux) drain() error {
	s := d.session.Load()
	for {
		ds, err := s.Pull(d.ctx, pullBytes, func() {})
		if err != nil || len(ds) == 0 {
			return err
		}
		d.hand(ds)
		s.Written()
		d.acknowledge()
		d.breathe()
	}
}

// breath is the longest that the pump waits for readers that read: they are as fast as it is, but take turns with it. What they would lag
// behind costs more to read from the log.
const breath = 2 * time.Millisecond

// breathe waits for a moment where a queue is half full, until it is not. A reader that has taken nothing since the last time is not waited for.
func (d *Demux) breathe() {
	d.mu.Lock()
	pressed := d.pressed
	d.pressed = false
	if pressed {
		select {
		case <-d.space: // of an earlier time
		default:
		}
	}
	d.mu.Unlock()
	if !pressed {
		return
	}
	t := time.NewTimer(breath)
	defer t.Stop()
	select {
	case <-d.space:
	case <-t.C:
	case <-d.ctx.Done():
	}
}

// hasRoom tells the pump that a queue has room again. mu is held.
func (d *Demux) hasRoom() {
	select {
	case d.space <- struct{}{}:
	default:
	}
}

// hand gives each delivery to the reader that it concerns.
func (d *Demux) hand(ds []edge.Delivery) {
	var other []edge.Delivery
	d.mu.Lock()
	for i := range ds {
		if !d.dispatch(&ds[i]) {
			other = append(other, ds[i])
		}
	}
	d.mu.Unlock()
	for i := range other {
		d.cfg.Other(other[i])
	}
}
