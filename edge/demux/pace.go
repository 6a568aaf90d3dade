package demux

import (
	"context"
	"time"
)

// breath is the longest that the pump waits for readers that read: they are as fast as it is, but take turns with it.
// What they would lag behind costs more to read from the log.
const breath = 2 * time.Millisecond

// pace has the pump wait for a moment where a queue is half full whose reader reads. Its Demux's mu guards it, but for
// wait.
type pace struct {
	pressed bool          // such a queue is half full
	room    chan struct{} // holds one token when a queue has room again
}

// press notes that a queue is half full. A reader that has taken nothing since the pump last waited for it is not
// waited for.
func (p *pace) press(q *queue) {
	if q.taken != q.awaited {
		q.awaited, p.pressed = q.taken, true
	}
}

// hasRoom tells the pump that a queue has room again.
func (p *pace) hasRoom() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// pressing reports whether the pump is to wait now.
func (p *pace) pressing() bool {
	if !p.pressed {
		return false
	}
	p.pressed = false
	select {
	case <-p.room: // of an earlier time
	default:
	}
	return true
}

// wait waits for a moment, until a queue has room.
func (p *pace) wait(ctx context.Context) {
	t := time.NewTimer(breath)
	defer t.Stop()
	select {
	case <-p.room:
	case <-t.C:
	case <-ctx.Done():
	}
}
