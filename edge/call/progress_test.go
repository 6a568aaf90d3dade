package call

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/agora-relay/agora"
)

// Every state of a request meets every event: what is known of its being stored stays, and only that presence knows
// nobody here undoes it.
func TestARequestIsAskedOrUnsaidOnceAndForAll(t *testing.T) {
	for s := range requestStates {
		for e := range requestEvents {
			next := requestNext[s][e]
			if next >= requestStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, s)
			}
			var holds bool
			switch {
			case e == requestForgotten:
				holds = next == requestUnknown
			case s == requestAsked || s == requestUnsaid:
				holds = next == s
			case e == requestOpens:
				holds = next == requestOpen
			case s == requestUnknown: // nothing is stored before presence may know
				holds = next == requestUnknown
			case e == requestStored:
				holds = next == requestAsked
			case e == requestRefused:
				holds = next == requestUnsaid
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, s)
			}
		}
	}
}

// Who was asked learns of a call that ends without an answer, unless others have told, or it was not asked.
func TestWhatWhoWasAskedIsTold(t *testing.T) {
	aborted := agora.Errorf(agora.StreamAborted, "over")
	for about, c := range map[string]struct {
		so   func(*progress)
		want agora.Code
	}{
		"its caller goes":                      {func(*progress) {}, agora.StreamAborted},
		"its deadline passes":                  {func(p *progress) { p.fail(errLate) }, agora.Timeout},
		"its deadline passes after its end":    {func(p *progress) { p.end(io.EOF); p.fail(errLate) }, agora.StreamAborted},
		"others have ended it, and died":       {func(p *progress) { p.lose(aborted, false) }, agora.StreamAborted},
		"others have ended it, and told":       {func(p *progress) { p.lose(aborted, false); p.lose(aborted, true) }, ""},
		"they have told before its caller":     {func(p *progress) { p.lose(aborted, true); p.givesUp(givenUp) }, ""},
		"its request was refused":              {func(p *progress) { p.hears(requestRefused) }, ""},
		"its request was refused, once stored": {func(p *progress) { p.hears(requestStored); p.hears(requestRefused) }, agora.StreamAborted},
	} {
		p := progress{ended: make(chan struct{})}
		if _, opened := p.asking(); opened {
			t.Fatal("presence knows of a call before it is opened")
		}
		p.hears(requestOpens)
		c.so(&p)
		if got := codeOf(p.now()); got != c.want {
			t.Errorf("%s: the code is %q, want %q", about, got, c.want)
		}
	}
}

// A call is given up permanently by its caller's word alone, not as the caller's time is over.
func TestACallIsGivenUpByItsCallersWord(t *testing.T) {
	for cause, want := range map[error]giveUp{context.Canceled: notGivenUp, errors.New("gone"): notGivenUp, ErrGivenUp: givenUp} {
		p := progress{ended: make(chan struct{})}
		ctx, cancel := context.WithCancelCause(t.Context())
		if p.isGivenUp(ctx) {
			t.Error("a call is given up while its caller waits")
		}
		cancel(cause)
		if is := p.isGivenUp(ctx); is != (want == givenUp) || p.now().giveUp != want {
			t.Errorf("%v: given up %t, %v; want %v", cause, is, p.now().giveUp, want)
		}
	}
}
