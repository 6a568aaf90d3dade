package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Answer is what comes back of a call: a whole message, or the parts of a stream. One goroutine at a time calls Next; Close may be
// called from any.
type Answer struct {
	r     *Registry
	id    string // among those of the Registry
	call  presence.Call
	inbox *broker.Inbox
	wake  chan struct{}
	taken atomic.Int64 // bytes that the caller has taken
	kept  atomic.Int64 // bytes that were read and not taken

	state presence.CallState // as it was found
	msgs  []agora.Message    // read and not looked at yet; Next's own, as the next three
	began bool               // its first part was returned: what follows is of its stream
	first agora.Message      // that part, without its body
	at    uint64             // position of the part that Next returned last
	last  int64              // what that counts
	since int64              // taken since the box was trimmed
	timer *time.Timer        // of the deadline

	mu     sync.Mutex // guards the fields below
	err    error      // what Next returns from now on
	whole  bool       // it came to its end, or to one that every later reader would find
	opened bool       // presence knows, or may know, that somebody waits here
	begun  time.Time  // when it began to be asked here
	asked  bool       // the request is stored, or may not be stored here any more
	unsaid bool       // the request is not stored, for sure, and nobody else stores it
	closed bool
	ended  chan struct{} // closed when err is set from outside
}

func newAnswer(r *Registry, q Request) *Answer {
	m := &q.Message
	c := presence.Call{
		Tenant: m.To.Tenant, Box: q.Box, From: m.From, To: m.To.Agent, Request: m.ID, Deadline: m.Meta.Deadline, Named: q.Name != "",
	}
	if c.Box == "" || c.Named {
		c.Box = NewBox(c.Tenant, c.From, q.Name)
	}
	if c.Request == "" {
		c.Request = c.Box
	}
	if c.Named {
		c.Digest = digest(string(c.To), m.ID, m.Media, m.Meta.Dialect, string(m.Body))
	}
	return &Answer{r: r, id: strconv.FormatUint(r.next.Add(1), 36), call: c, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Box returns the call's id.
func (a *Answer) Box() string { return a.call.Box }

// RequestID returns the name by which the one who is asked knows the request.
func (a *Answer) RequestID() string { return a.call.Request }

func (a *Answer) address() agora.Address { return agora.ToBox(a.call.Tenant, a.call.Box, a.call.From) }

func (a *Answer) caller() agora.Address { return agora.ToAgent(a.call.Tenant, a.call.From) }

func (a *Answer) callee() agora.Address { return agora.ToAgent(a.call.Tenant, a.call.To) }

// ask writes the call into presence and the request into the log, once the box is listened to.
func (a *Answer) ask(ctx context.Context, q Request) error {
	if err := a.r.cfg.Reach(ctx, a.callee()); err != nil {
		return err
	}
	listens, begun := a.listen(ctx)
	if !begun {
		return errShut
	}
	defer func() { <-listens }()
	complete := q.completing(ctx)
	defer complete()
	state, asked, err := a.r.cfg.Presence.OpenCall(ctx, a.r.cfg.Holder, a.id, a.call, a.r.cfg.MaxAge, a.r.cfg.Doubt)
	if err != nil {
		return err
	}
	a.found(state, asked == presence.Asked)
	<-listens
	switch state {
	case presence.CallOther:
		a.forgotten()
		return agora.Errorf(agora.InvalidRequest, "the name of this call stands for another request")
	case presence.CallOver:
		a.forgotten()
		return a.whyOver(ctx)
	case presence.CallAnswered:
		a.r.count.Made.Add(1)
		return nil
	}
	again := false
	if asked == presence.Doubtful {
		asked, again, err = a.lookFor(ctx)
	}
	if err == nil && (asked == presence.Unasked || !guard.Once) {
		if q.Message, err = complete(); err == nil {
			q.Message.Again = again
			err = a.store(ctx, q)
		}
		a.notStored(err)
	}
	if err == nil {
		a.r.count.Made.Add(1)
	}
	return err
}

// lookFor looks in the mailbox of who is asked for a request of which nobody knows whether it was stored: what is not there now was stored no longer ago than looking took, if at all, so that
// the log knows it by its key. again tells that it may have been there, as the mailbox does not reach back that far.
func (a *Answer) lookFor(ctx context.Context) (asked presence.Asking, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	b := a.r.cfg.Broker
	f, err := b.Find(ctx, broker.Search{To: a.callee(), Most: 1, Match: func(m *agora.Message) bool { return m.Meta.Call == a.call.Box }})
	switch {
	case err != nil:
		return asked, false, err
	case len(f.Stored) > 0:
		a.isAsked()
		return presence.Asked, false, a.r.cfg.Presence.Asked(ctx, a.call)
	case !f.Whole:
		return asked, false, agora.Errorf(agora.Unavailable, "the mailbox of the addressee can't be read now")
	}
	return presence.Unasked, int64(f.Records) >= a.r.cfg.MaxRecords, a.r.cfg.Presence.AskAgain(ctx, a.call)
}

// whyOver returns why a call was ended that is made again: its box says so, as soon as whoever has ended it has told.
func (a *Answer) whyOver(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	for msgs := a.msgs; ; {
		for i := range msgs {
			if m := &msgs[i]; m.Kind == agora.Control && m.Part == agora.Abort && m.From == "" {
				return aborted(m)
			}
		}
		var err error
		if msgs, err = a.inbox.Next(soon, pullBytes); err == nil && len(msgs) > 0 {
			continue
		}
		select {
		case <-a.wake:
		case <-soon.Done():
			return cmp.Or(ctx.Err(), error(errGivenUp))
		}
	}
}

// tellTime is how long who has ended a call may take to say so in its box.
const tellTime = 2 * time.Second

var errGivenUp = agora.Errorf(agora.StreamAborted, "the call of this name was given up before it was answered")

// listen begins to listen to the box, and reads what it has, behind: the channel is closed once that is done. It returns false where the Registry is over.
func (a *Answer) listen(ctx context.Context) (<-chan struct{}, bool) {
	a.mu.Lock()
	a.inbox, a.opened, a.begun = a.r.cfg.Broker.Listen(a.address(), broker.From{}, a.woken), true, time.Now()
	a.mu.Unlock()
	listens := make(chan struct{})
	return listens, a.r.background(func() { // an empty box is live once its stream's leader was asked, which takes as long as presence does
		defer close(listens)
		a.msgs, _ = a.inbox.Next(ctx, pullBytes) // what fails here is tried again by Next
		a.keep()
	})
}

// completing begins to complete the message, and returns what waits until it is.
func (q *Request) completing(ctx context.Context) func() (agora.Message, error) {
	m := q.Message
	if q.Complete == nil {
		return func() (agora.Message, error) { return m, nil }
	}
	var work sync.WaitGroup
	var err error
	work.Go(func() { err = q.Complete(ctx, &m) })
	return func() (agora.Message, error) {
		work.Wait()
		return m, err
	}
}

// found notes how the call was found, and whether nobody needs to store its request any more.
func (a *Answer) found(state presence.CallState, asked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state, a.asked = state, asked
}

// isAsked notes that the request is stored.
func (a *Answer) isAsked() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = true
}

// asking returns how long ago the request began to be stored, zero where it is; and false where presence knows of nobody who waits here.
func (a *Answer) asking() (since time.Duration, opened bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened && !a.asked {
		since = max(time.Since(a.begun), time.Millisecond)
	}
	return since, a.opened
}

// forgotten says that nobody waits here, as far as presence knows.
func (a *Answer) forgotten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = false
}

// notStored notes that the request was refused for good before it could be stored. Of a call with a name another edge may have stored it.
func (a *Answer) notStored(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsaid = err != nil && !a.call.Named && agora.AsError(err).Code != agora.Unavailable
}

// store stores the request: once, however many edges do so at a time.
func (a *Answer) store(ctx context.Context, q Request) error {
	m := q.Message
	m.Kind, m.Part, m.ID, m.Meta.Call = agora.Request, agora.Whole, a.call.Request, a.call.Box
	if !m.Meta.Deadline.IsZero() && !a.r.cfg.Broker.Now().Before(m.Meta.Deadline) {
		return errLate
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := a.r.cfg.Broker.Publish(ctx, a.key(), m); err != nil {
		return err
	}
	a.isAsked()
	a.r.cfg.Wrote(a.callee())
	if a.call.Named {
		return a.r.cfg.Presence.Asked(ctx, a.call)
	}
	return nil
}

// key is the request's own in the log: whoever makes the call stores it under this one.
func (a *Answer) key() string {
	if !guard.Once {
		return rand.Text()
	}
	return "call/" + a.call.Box
}

var errLate = agora.Errorf(agora.Timeout, "the deadline has passed")

// woken is called by the inbox and must not block.
func (a *Answer) woken() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Next returns the next part of the answer: a whole message or the start of a stream, then its chunks, then its end; after
// the last io.EOF. It blocks while there is none. The error of a call that was not answered is an *agora.Error: STREAM_ABORTED when who was asked has gone or
// given up, TIMEOUT when the deadline has passed, UNAVAILABLE when parts were lost; it stays. When ctx ends Next returns its error, and may be
// called again. The body is shared and not to be changed.
func (a *Answer) Next(ctx context.Context) (agora.Message, error) {
	a.taken.Add(a.last)
	a.trim(a.last)
	a.last = 0
	for {
		if err := a.over(); err != nil {
			return agora.Message{}, err
		}
		for len(a.msgs) > 0 && a.r.cfg.Delivers() == nil {
			m := a.msgs[0]
			a.msgs = a.msgs[1:]
			size := int64(len(m.Body) + overhead)
			a.kept.Add(-size)
			if a.take(&m) {
				a.last, a.at = size, m.Seq
				return m, nil
			}
			if a.over() != nil {
				break
			}
		}
		if a.over() != nil {
			continue
		}
		if err := a.fill(ctx); err != nil {
			return agora.Message{}, err
		}
	}
}

// Buffered reports whether Next has something at hand, which may turn out to be nothing for the caller. It is for the goroutine that calls Next.
func (a *Answer) Buffered() bool { return len(a.msgs) > 0 }

// over returns why nothing more comes; nil while something may.
func (a *Answer) over() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// fill waits until something was read.
func (a *Answer) fill(ctx context.Context) error {
	if len(a.msgs) > 0 { // the edge may not hand it on now
		return a.rest(ctx)
	}
	msgs, more := a.inbox.Take(pullBytes)
	if more {
		var err error
		if msgs, err = a.inbox.Next(ctx, pullBytes); err != nil {
			return a.rest(ctx)
		}
	}
	if a.msgs = msgs; len(msgs) > 0 {
		a.keep()
		return nil
	}
	if a.state == presence.CallAnswered {
		a.fail(agora.Errorf(agora.Unavailable, "the answer of the call of this name is not kept any more"))
		return nil
	}
	select {
	case <-a.wake:
	case <-a.deadline():
		a.fail(errLate)
	case <-a.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// rest waits a moment before what failed is tried again.
func (a *Answer) rest(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	select {
	case <-a.deadline():
		a.fail(errLate)
	case <-a.ended:
	case <-soon.Done():
	}
	return ctx.Err()
}

const restTime = 100 * time.Millisecond

// deadline returns what says that the deadline has passed; nil where there is none.
func (a *Answer) deadline() <-chan time.Time {
	if a.call.Deadline.IsZero() {
		return nil
	}
	if a.timer == nil {
		a.timer = time.NewTimer(max(0, a.call.Deadline.Sub(a.r.cfg.Broker.Now())))
	}
	return a.timer.C
}

// keep counts what was read.
func (a *Answer) keep() {
	for i := range a.msgs {
		a.kept.Add(int64(len(a.msgs[i].Body) + overhead))
	}
}

// held returns the bytes kept for the caller.
func (a *Answer) held() int64 {
	a.mu.Lock()
	inbox := a.inbox
	a.mu.Unlock()
	if inbox == nil {
		return 0
	}
	return a.kept.Load() + int64(inbox.Held())
}

// take decides what becomes of what stands in the box: only who was asked answers, and only once.
func (a *Answer) take(m *agora.Message) bool {
	switch {
	case m.Kind == agora.Gap:
		a.fail(agora.Errorf(agora.Unavailable, "parts of the answer were lost before they were read"))
		return false
	case m.Kind == agora.Control && m.Part == agora.Abort && m.From == "":
		a.end(aborted(m))
		return false
	case m.Kind != agora.Reply || guard.First && m.From != a.call.To:
		return false
	case !a.began:
		return a.begin(m)
	case !guard.First:
	case m.Part == agora.Whole || m.Stream != a.first.Stream || m.Session != a.first.Session:
		return false // another one, to nobody
	}
	switch m.Part {
	case agora.End:
		a.end(io.EOF)
	case agora.Cancel:
		a.end(agora.Errorf(agora.StreamAborted, "the agent has cancelled its answer"))
		return false
	case agora.Abort:
		a.end(aborted(m))
		return false
	}
	return m.Part == agora.Chunk || m.Part == agora.End
}

// begin takes the first part.
func (a *Answer) begin(m *agora.Message) bool {
	switch m.Part {
	case agora.Whole:
		a.end(io.EOF)
	case agora.Start:
	case agora.Chunk, agora.End: // what it began with has been dropped
		a.fail(agora.Errorf(agora.Unavailable, "the beginning of the answer is not kept any more"))
		return false
	default:
		a.end(aborted(m))
		return false
	}
	a.began, a.first = true, *m
	a.first.Body = nil
	return true
}

// aborted is the error that stands in an abort.
func aborted(m *agora.Message) *agora.Error {
	if m.AbortBody().Code == agora.Timeout {
		return agora.Errorf(agora.Timeout, "the answer's deadline has passed")
	}
	return agora.Errorf(agora.StreamAborted, "the agent that was asked gave up before its answer was whole")
}

// trim drops what was read of a long answer, unless it may be asked for again.
func (a *Answer) trim(read int64) {
	if a.since += read; a.since < trimBytes || a.call.Named || !a.began {
		return
	}
	a.since = 0
	a.r.forget(a.address(), a.at)
}

// end says how the answer has come to its end, for every reader of the box.
func (a *Answer) end(err error) { a.set(err, true) }

// fail says that the answer won't come to its end here.
func (a *Answer) fail(err error) { a.set(err, false) }

func (a *Answer) set(err error, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err, a.whole = err, whole
		close(a.ended)
	}
}

// Close says that the caller waits no more. Where the answer has not come to its end, who was asked is told that nobody
// waits, once: at once, or of a call with a name when its caller has not made it again in its grace. It does not block.
func (a *Answer) Close() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.closed = true
	err, whole, opened, unsaid, inbox := a.err, a.whole, a.opened, a.unsaid, a.inbox
	a.mu.Unlock()
	if inbox != nil {
		inbox.Close()
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.r.exit(a)
	switch {
	case whole && errors.Is(err, io.EOF):
		a.r.count.Answered.Add(1)
	case err != nil:
		a.r.count.Failed.Add(1)
	case opened:
		a.r.count.GivenUp.Add(1)
	}
	switch {
	case unsaid:
		a.r.leave(a, whole, "")
	case opened:
		a.r.leave(a, whole, codeOf(err))
	}
}

// codeOf is what who was asked is told of a call that nobody waits for any more.
func codeOf(err error) agora.Code {
	if errors.Is(err, errLate) {
		return agora.Timeout
	}
	return agora.StreamAborted
}
