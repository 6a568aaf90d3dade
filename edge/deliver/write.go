package deliver

import (
	"errors"
	"os"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/pump"
)

const (
	pullBytes = 64 << 10 // about what one pull may bring, while the edge holds little: its frames fit a buffer of the pool
	leastPull = 8 << 10  // the same, however much it holds
	maxRetry  = 2 * time.Second
)

// write does what a writer was called for: one round for a writer that counts, which comes again where there is more.
// One that has had to wait, and does not count any more, continues until there is nothing.
func (o *Outbox) write(w *Writer) (more bool) {
	o.mu.Lock()
	before := o.stage
	o.stage = next[before][comes]
	now := o.stage
	o.mu.Unlock()
	switch {
	case now == before: // it is late
		return false
	case now == pullsBeside:
		o.writeBeside(w)
		return false
	}
	for o.round(w) {
		if w.counts {
			return true
		}
	}
	return false
}

// round writes what is queued, and what a pull brings, and reports whether there is more: then a writer that counts is
// to come again. Otherwise the writing has ended, as it has where the line took nothing more.
func (o *Outbox) round(w *Writer) (more bool) {
	o.mu.Lock()
	var s *edge.Session // where a pull may have something
	if o.mailbox == due && o.life == open {
		o.mailbox = empty
		s = o.Session.Load()
	}
	out := o.pending
	if out != nil {
		o.pending, o.taken = nil, cap(out.B)
		o.roomy()
	}
	o.mu.Unlock()
	// What is queued goes out before a pull, which may wait for the log.
	sent := out == nil || o.send(out, w)
	if sent && s != nil {
		out = o.pull(s, w)
		if sent = out == nil || o.send(out, w); sent {
			s.Written()
		}
	}
	o.mu.Lock()
	o.taken = 0
	more = sent && (o.pending != nil || o.mailbox == due && o.life == open)
	switch {
	case !more:
		o.stage = next[o.stage][ends]
		o.roomy()
		if o.resting {
			o.restLocked()
		}
	case w.counts:
		o.stage = next[o.stage][goesOn]
	}
	over := !more && o.life != open
	o.mu.Unlock()
	if over {
		o.settle(w)
	}
	return more
}

// takePending moves what is queued to the end of out. mu is held.
func (o *Outbox) takePending(out *buffer.Buffer) {
	if o.pending != nil {
		out.B = append(out.B, o.pending.B...)
		buffer.Put(o.pending)
		o.pending = nil
	}
}

// pull takes deliveries from the session, and what was queued meanwhile; nil where there is nothing.
func (o *Outbox) pull(s *edge.Session, w *Writer) *buffer.Buffer {
	w.pulls = o
	ds, err := s.Pull(o.Context(), max(pullBytes*o.slot.Share()/admission.FullShare, leastPull), w.reads)
	w.pulls = nil
	out := buffer.Get()
	o.mu.Lock()
	for o.stage = next[o.stage][pulled]; o.stage == pulledBeside; {
		o.wait()
	}
	if o.life == open { // nothing follows the last frame
		// A join may have been answered before the pull began: its events come behind the answer.
		o.takePending(out)
	}
	o.mu.Unlock()
	if len(ds) > 0 {
		out.B = o.line.Encode(out.B, ds, w)
		s.Queued()
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && len(ds) > 0 {
		o.mailbox = due
	}
	if err != nil {
		o.pullAgain(err)
	} else if o.retry != nil {
		o.retry.Over()
	}
	o.takePending(out)
	if len(out.B) == 0 {
		buffer.Put(out)
		return nil
	}
	o.taken = cap(out.B) + len(out.B) // the session keeps what was pulled until it is written
	return out
}

// pullWaits says that the pull waits from now on: what is queued goes out beside it.
func (o *Outbox) pullWaits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stage = next[o.stage][waits]
	if o.pending != nil || o.mailbox == due {
		o.callLocked()
	}
}

// pullAgain has the session pulled once more in a moment. mu is held.
func (o *Outbox) pullAgain(err error) {
	if o.life != open {
		return
	}
	if o.mailbox == empty {
		o.mailbox = failed
	}
	if o.retry == nil {
		o.retry = &pump.Retry{Longest: maxRetry}
	}
	pause := o.retry.Again(o.Wake)
	o.writers.Log.Debug("pull failed", "conn", o.Session.Load().Conn(), "retry", pause, "err", err)
}

// writeBeside writes what is queued, and tells what receipts have gathered, beside a pull that waits: until there is
// nothing, or the pull is over. Of what both write, the pull's comes last.
func (o *Outbox) writeBeside(w *Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.stage == pullsBeside && (o.news || o.pending != nil) {
		o.news = false
		s, out := o.Session.Load(), o.pending
		o.pending = nil
		o.roomy()
		o.mu.Unlock()
		sent := out == nil || o.send(out, w)
		if sent && s != nil {
			s.TellReceipts()
		}
		o.mu.Lock()
		if !sent {
			break
		}
	}
	o.stage = next[o.stage][besides]
	o.roomy()
}

// send writes out and returns it to the pool. On failure the connection is given up.
func (o *Outbox) send(out *buffer.Buffer, w *Writer) bool {
	defer buffer.Put(out)
	_, err := o.line.Write(out.B, w)
	if err == nil {
		return true
	}
	why := edge.Lost
	if errors.Is(err, os.ErrDeadlineExceeded) {
		why = edge.Stalled
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.Kill(why)
	o.shutLocked()
	return false
}
