package call

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// progress is how far a call is: whether its request is stored, whether its answer is over, and whether its caller waits.
type progress struct {
	ended chan struct{} // closed when the call is over
	begun time.Time     // when it began to be asked here; guarded by mu

	mu    sync.Mutex // guards begun and stage
	stage stage
}

// stage is what a progress says of a call.
type stage struct {
	err     error // what Next returns from now on
	whole   bool  // it came to its end, or to one that every later reader would find
	opened  bool  // presence knows, or may know, that somebody waits here
	asked   bool  // the request is stored, or may not be stored here any more
	unsaid  bool  // the request is not stored, for sure, and nobody else stores it
	closed  bool
	givenUp bool // its caller does not make the call again
	told    bool // others have ended the call, and have told who was asked
}

// now returns what is so now.
func (p *progress) now() stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage
}

// change changes what is so.
func (p *progress) change(f func(*stage)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stage)
}

// over returns why nothing more comes; nil while something may.
func (p *progress) over() error { return p.now().err }

// end says how the answer has come to its end, for every reader of the box.
func (p *progress) end(err error) { p.set(err, true) }

// fail says that the answer won't come to its end here.
func (p *progress) fail(err error) { p.set(err, false) }

// lose says that others have ended the call, and whether they have told who was asked. The rest is done here as well: they may have died before it.
func (p *progress) lose(err error, told bool) {
	p.change(func(s *stage) { s.givenUp, s.told = true, s.told || told })
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

// isGivenUp reports whether a context says that the call is not made again, and takes note of it.
func (p *progress) isGivenUp(ctx context.Context) bool {
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrGivenUp) {
		return false
	}
	p.change(func(s *stage) { s.givenUp = true })
	return true
}

// open notes that presence may know from now on that somebody waits here.
func (p *progress) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage.opened, p.begun = true, time.Now()
}

// setAsked notes whether nobody needs to store the request any more.
func (p *progress) setAsked(asked bool) { p.change(func(s *stage) { s.asked = asked }) }

// forgotten says that nobody waits here, as far as presence knows.
func (p *progress) forgotten() { p.change(func(s *stage) { s.opened = false }) }

// notStored notes that the request was refused for good before it could be stored. Of a call with a name another edge may have stored it.
func (p *progress) notStored(err error, named bool) {
	p.change(func(s *stage) {
		s.unsaid = err != nil && !named && agora.AsError(err).Code != agora.Unavailable
	})
}

// asking returns how long ago the request began to be stored, zero where it is; and false where presence knows of nobody who waits here.
func (p *progress) asking() (since time.Duration, opened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage.opened && !p.stage.asked {
		since = max(time.Since(p.begun), time.Millisecond)
	}
	return since, p.stage.opened
}
