package demux

import (
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/pump"
)

const (
	pullBytes  = 64 << 10 // about what one pull brings
	firstDelay = pump.FirstDelay
	lastDelay  = 2 * time.Second
)

// Wake has the session pulled from. It does not block, and may be called at any time.
func (d *Demux) Wake() {
	if d.session.Load() != nil { // else Begin wakes
		d.pump.Wake()
	}
}

// failed notes that a pull met an error.
func (d *Demux) failed(err error, again time.Duration) {
	d.cfg.Log.Debug("pull failed", "retry", again, "err", err)
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
		d.mu.Lock()
		slow := d.pace.pressing()
		d.mu.Unlock()
		if slow {
			d.pace.wait(d.ctx)
		}
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
