package deliver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/pump"
)

// Outbox is the half of a connection that writes: what is to be written, and how far the connection has come. Init is
// called before any other method; then all may be called from any goroutine.
type Outbox struct {
	Session atomic.Pointer[edge.Session] // whose deliveries are pulled; nil until there is one

	line    Line
	writers *Writers
	slot    *admission.Slot
	span    atomic.Pointer[span] // under which verbs and pulls run; a quiet connection has none
	over    atomic.Bool          // spans are over when they are made: GiveUp was called

	mu      sync.Mutex // guards the fields below
	stage   stage
	life    life
	mailbox mailbox
	busy    bool           // a verb runs, or waits for room
	resting bool           // Rest was called while something was at work
	news    bool           // there may be receipts that are not queued yet
	pending *buffer.Buffer // frames to write before any delivery; nil where there are none
	taken   int            // bytes that the writer has in hand
	room    *sync.Cond     // on mu: the writer took what was queued, or stopped; nil while nobody has waited
	retry   *pump.Retry    // of a pull; nil while none has failed
	linger  *time.Timer    // of a closing connection
}

// life is how far a connection has come. It only grows.
type life uint8

const (
	open    life = iota // frames are queued and verbs begin
	closing             // the last frame is queued, or the connection is gone: nothing is queued any more
	ended               // the line knows that it has ended
)

func (l life) String() string { return [...]string{"open", "closing", "ended"}[l] }

// mailbox says whether a session is to be pulled.
type mailbox uint8

const (
	empty  mailbox = iota
	due            // a pull may have something
	failed         // one has failed, and is tried again in a moment
)

func (m mailbox) String() string { return [...]string{"empty", "due", "failed"}[m] }

// Init sets up an outbox, for which writers write to a line that was admitted.
func (o *Outbox) Init(l Line, w *Writers, a edge.Admission) {
	o.line, o.writers, o.slot = l, w, a.Slot()
}

// Hold has nothing be written until Start, as the line is not up yet. It comes right behind Init.
func (o *Outbox) Hold() { o.stage = writes }

// Start ends Hold.
func (o *Outbox) Start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handOn()
}

// Wake is for the session, to call when Pull has something.
func (o *Outbox) Wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.life == open {
		o.mailbox = due
		o.callLocked()
	}
}

// callLocked has a writer write what there is. mu is held.
func (o *Outbox) callLocked() {
	o.news = true
	before := o.stage
	if o.stage = next[before][queued]; o.stage == before {
		return
	}
	if before == quiet {
		o.slot.MarkActive()
	}
	o.writers.call(o)
}

// Begin locks the outbox, and returns the buffer to which a frame is to be appended, behind what is queued. False says
// that nothing is queued any more, and nothing is locked; else Commit or CommitLast follows. A connection that takes so
// little of what it learns that even what is not told in answer has piled up is given up.
func (o *Outbox) Begin() ([]byte, bool) {
	o.mu.Lock()
	if o.life == open && o.pending != nil && len(o.pending.B) > overflow*o.writers.Answers {
		o.shutLocked()
		o.line.Kill(edge.Stalled)
	}
	if o.life != open {
		o.mu.Unlock()
		return nil, false
	}
	if o.pending == nil {
		o.pending = buffer.Get()
	}
	return o.pending.B, true
}

// overflow is how many times the bound of answers may be queued before a connection is given up. Answers can't come to
// that, as Leave waits at one; notices of what is under way could, if the peer took nothing.
const overflow = 4

// Commit takes the buffer of Begin with the frame, which is written in its turn, and unlocks the outbox.
func (o *Outbox) Commit(b []byte) {
	o.pending.B = b
	o.callLocked()
	o.mu.Unlock()
}

// CommitLast is Commit for the last frame of the connection, or none. What is queued has until the linger to be taken.
func (o *Outbox) CommitLast(b []byte) {
	if o.pending.B = b; len(b) == 0 {
		buffer.Put(o.pending)
		o.pending = nil
	}
	o.callLocked()
	o.shutLocked()
	o.mu.Unlock()
}

// Append queues frames; false says that nothing is queued any more.
func (o *Outbox) Append(frames []byte) bool {
	b, ok := o.Begin()
	if ok {
		o.Commit(append(b, frames...))
	}
	return ok
}

// AppendQuiet is Append for what a tick of the wheel has to tell hundreds of quiet connections: where nothing else is
// to be written, the frames go out from the caller's goroutine, which does not wait for room, and no writer starts.
func (o *Outbox) AppendQuiet(frames []byte) bool {
	o.mu.Lock()
	alone := o.life == open && o.stage == quiet && o.pending == nil
	if alone {
		o.stage = writes
	}
	o.mu.Unlock()
	if !alone {
		return o.Append(frames)
	}
	taken, _ := o.line.Write(frames, nil) // a writer meets the error, should there be one
	o.mu.Lock()
	defer o.mu.Unlock()
	if taken < len(frames) {
		left := buffer.Get() // which goes before what came up meanwhile
		left.B = append(left.B, frames[taken:]...)
		o.takePending(left)
		o.pending = left
	}
	o.handOn()
	return true
}

// handOn ends the time in which the caller stood for the writer: one comes where something came up meanwhile. mu is
// held.
func (o *Outbox) handOn() {
	if o.pending != nil || o.mailbox == due || o.life != open {
		o.stage = called
		o.slot.MarkActive()
		o.writers.call(o)
		return
	}
	o.stage = quiet
	o.restLocked()
	o.roomy()
}

// AwaitRoom returns once the peer has taken enough of what is queued. A verb must not call it.
func (o *Outbox) AwaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.crammed() {
		o.wait()
	}
}

// Enter begins a verb, one at a time; false where the connection is closing and none may begin. Otherwise Leave
// follows.
func (o *Outbox) Enter() bool {
	o.slot.MarkActive()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = o.busy || o.life == open
	return o.life == open
}

// Leave ends a verb. It blocks while the peer does not take its answers, and reports whether it had to.
func (o *Outbox) Leave() (waited bool) {
	o.mu.Lock()
	for o.crammed() {
		waited = true
		o.wait()
	}
	o.busy = false
	open := o.life == open
	o.mu.Unlock()
	if !open {
		o.settle(nil)
	}
	return waited
}

// Closing reports whether nothing is queued any more.
func (o *Outbox) Closing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.life != open
}

// Busy reports whether a verb runs.
func (o *Outbox) Busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy
}

// Shut has nothing be queued any more, as the connection is over.
func (o *Outbox) Shut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shutLocked()
}

// shutLocked is Shut, where mu is held.
func (o *Outbox) shutLocked() {
	if o.life != open {
		return
	}
	o.life = closing
	o.linger = time.AfterFunc(o.writers.Linger, o.tired)
	o.roomy()
}

// tired gives a closing connection up that has not taken what is queued.
func (o *Outbox) tired() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.Kill(edge.Lost)
}

// Wait returns when the connection is closing, and nothing is written any more: then its line has ended, once no verb
// runs.
func (o *Outbox) Wait() {
	o.mu.Lock()
	for o.life == open || o.stage != quiet {
		o.wait()
	}
	o.retry.Stop()
	o.linger.Stop()
	o.mu.Unlock()
	o.settle(nil)
}

// settle tells the line that it has ended, where neither a verb nor a writer runs any more: whichever of them ends last
// does it.
func (o *Outbox) settle(w *Writer) {
	o.mu.Lock()
	last := o.life == closing && o.stage == quiet && !o.busy
	if last {
		o.life = ended
	}
	o.mu.Unlock()
	if last {
		o.line.Ended(w)
	}
}

// crammed reports whether so much is queued that the peer is to take some of it first. mu is held.
func (o *Outbox) crammed() bool {
	return o.pending != nil && len(o.pending.B) > o.writers.Answers && o.life == open
}

// wait waits until the writer took what was queued, or stopped. mu is held, and free meanwhile.
func (o *Outbox) wait() {
	if o.room == nil {
		o.room = sync.NewCond(&o.mu)
	}
	o.room.Wait()
}

// roomy tells those who wait that the writer took what was queued, or stopped. mu is held.
func (o *Outbox) roomy() {
	if o.room != nil {
		o.room.Broadcast()
	}
}

// Held returns the bytes that are queued or being written, and whether a verb or a writer is at work, or will be soon.
func (o *Outbox) Held() (bytes int64, working bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes = int64(o.taken)
	if o.pending != nil {
		bytes += int64(cap(o.pending.B))
	}
	return bytes, o.stage != quiet || o.busy || o.mailbox == failed
}

// Context returns what verbs and pulls run under: it is over when the connection is given up.
func (o *Outbox) Context() context.Context {
	if s := o.span.Load(); s != nil {
		return s
	}
	s := new(span)
	s.Context, s.cancel = context.WithCancel(context.Background())
	if !o.span.CompareAndSwap(nil, s) {
		return o.Context()
	}
	if o.over.Load() {
		s.cancel()
	}
	return s
}

// span is the context of a connection at work.
type span struct {
	context.Context
	cancel context.CancelFunc
}

// GiveUp ends what runs under Context, now and later.
func (o *Outbox) GiveUp() {
	o.over.Store(true)
	if s := o.span.Load(); s != nil {
		s.cancel()
	}
}

// Rest lets go of what only a connection at work needs: at once, or when the writing that goes on has ended.
func (o *Outbox) Rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resting = true
	o.restLocked()
}

// restLocked is Rest, where mu is held.
func (o *Outbox) restLocked() {
	if o.stage == quiet && !o.busy {
		o.span.Store(nil)
		o.resting = false
	}
}
