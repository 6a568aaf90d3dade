package call

import (
	"context"
	"errors"
	"sync"
	"time"
)

// progress is how far a call is: whether its request is stored, whether its answer is over, and whether its caller
// waits.
type progress struct {
	ended chan struct{} // closed when the call is over
	begun time.Time     // when it began to be asked here; guarded by mu

	mu    sync.Mutex // guards begun and stage
	stage stage
}

// stage is what a progress says of a call.
type stage struct {
	request requestState
	giveUp  giveUp
	err     error // what Next returns from now on
	whole   bool  // with err: the answer came to its end, or to one that every later reader would find
	closed  bool  // its caller waits no more
}

// requestState is what is known of the request of a call.
type requestState uint8

const (
	requestUnknown requestState = iota // presence knows of nobody who waits here
	requestOpen                        // presence knows, or may know, that somebody waits here, and the request may be stored here yet
	requestAsked                       // the request is stored, or may not be stored here any more
	requestUnsaid                      // the request is not stored, for sure, and nobody else stores it
	requestStates
)

// requestEvent is what becomes of the request of a call.
type requestEvent uint8

const (
	requestOpens     requestEvent = iota // presence learns of the call
	requestStored                        // it is stored, or another edge stores it
	requestRefused                       // it was refused permanently before it could be stored, and is nobody else's
	requestForgotten                     // the call is another's, or over: presence knows of nobody who waits here
	requestEvents
)

// requestNext is the life of a request: what each event makes of it.
var requestNext = [requestStates][requestEvents]requestState{
	//               opens        stored        refused        forgotten
	requestUnknown: {requestOpen, requestUnknown, requestUnknown, requestUnknown},
	requestOpen:    {requestOpen, requestAsked, requestUnsaid, requestUnknown},
	requestAsked:   {requestAsked, requestAsked, requestAsked, requestUnknown},
	requestUnsaid:  {requestUnsaid, requestUnsaid, requestUnsaid, requestUnknown},
}

func (s requestState) String() string {
	return [...]string{"unknown", "open", "asked", "unsaid"}[s]
}

// giveUp is whether a call is given up permanently. It only grows.
type giveUp uint8

const (
	notGivenUp  giveUp = iota // its caller waits, or may make the call again in its grace
	givenUp                   // its caller does not make the call again, or others have ended it: who was asked is to be told
	givenUpTold               // others have ended the call, and have told who was asked
)

func (g giveUp) String() string { return [...]string{"no", "given up", "told"}[g] }

// now returns what is so now.
func (p *progress) now() stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage
}

// hears moves the request on by an event.
func (p *progress) hears(e requestEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e == requestOpens {
		p.begun = time.Now()
	}
	p.stage.request = requestNext[p.stage.request][e]
}

// givesUp notes that the call is given up.
func (p *progress) givesUp(g giveUp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage.giveUp = max(p.stage.giveUp, g)
}

// over returns why nothing more comes; nil while something may.
func (p *progress) over() error { return p.now().err }

// end says how the answer has come to its end, for every reader of the box.
func (p *progress) end(err error) { p.set(err, true) }

// fail says that the answer won't come to its end here.
func (p *progress) fail(err error) { p.set(err, false) }

// lose says that others have ended the call, and whether they have told who was asked. The rest is done here as well:
// they may have died before it.
func (p *progress) lose(err error, told bool) {
	g := givenUp
	if told {
		g = givenUpTold
	}
	p.givesUp(g)
	p.fail(err)
}

func (p *progress) set(err error, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage.err == nil {
		p.stage.err, p.stage.whole = err, whole
		close(p.ended)
	}
}

// close says that the caller waits no more, and returns what is so then; false where it has said so before.
func (p *progress) close() (was stage, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = !p.stage.closed
	p.stage.closed = true
	return p.stage, first
}

// isGivenUp reports whether a context says that the call is not made again, and notes it.
func (p *progress) isGivenUp(ctx context.Context) bool {
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrGivenUp) {
		return false
	}
	p.givesUp(givenUp)
	return true
}

// asking returns how long ago the request began to be stored, zero where it is; and false where presence knows of
// nobody who waits here.
func (p *progress) asking() (since time.Duration, opened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.stage.request {
	case requestUnknown:
		return 0, false
	case requestAsked:
		return 0, true
	}
	return max(time.Since(p.begun), time.Millisecond), true
}
