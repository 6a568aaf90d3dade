package deliver

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

// What a tick of the wheel has to tell hundreds of quiet connections goes out before it is over, without a writer for
// each.
func TestWhatAQuietPeerIsToldGoesOutAtOnce(t *testing.T) {
	p := peersOf(writersOf(t, 0), 1)[0] // no writer comes
	for k := range 3 {
		if !p.AppendQuiet([]byte("ping")) || p.has() != strings.Repeat("ping", k+1) || p.isStage() != quiet {
			t.Fatalf("after %d pings it has %q, and is %v", k+1, p.has(), p.isStage())
		}
	}
}

// A peer that takes only a part at once keeps nobody but its own writer. What is left goes before what came up
// meanwhile.
func TestWhatIsLeftOfAPingGoesBeforeWhatCameUpMeanwhile(t *testing.T) {
	p := peersOf(writersOf(t, 4), 1)[0]
	p.sticks()
	p.once = 3
	p.wrote = func() {
		p.wrote = nil
		p.Append([]byte("second"))
	}
	p.AppendQuiet([]byte("first,"))
	p.AppendQuiet([]byte(",third"))
	p.letsGo()
	await.True(t, "all is told in turn", func() bool { return p.has() == "first,second,third" })
}

// What binding an agent took would else be kept of each that says nothing after it: nearly a tenth of what an idle one
// costs.
func TestAConnectionAtRestKeepsNothingOfWhatItDid(t *testing.T) {
	p := peersOf(writersOf(t, 4), 1)[0]
	kept := func() bool { return p.span.Load() != nil }
	p.Enter()
	p.Context()
	if p.Rest(); !kept() {
		t.Fatal("a verb that runs could not be told that the socket is gone")
	}
	p.Leave()
	p.sticks()
	p.Append([]byte("a frame"))
	await.True(t, "a writer writes", func() bool { return p.isStage() == writes })
	if p.Rest(); !kept() {
		t.Fatal("a writer that runs could not be told that the socket is gone")
	}
	p.letsGo()
	await.True(t, "the writer has ended", func() bool { return p.isStage() == quiet })
	if kept() {
		t.Fatal("what the verb ran under is kept")
	}
	p.Context() // of a delivery
	if p.AppendQuiet([]byte("ping")); kept() {
		t.Fatal("what a delivery took is kept after a ping")
	}
}

// A peer that takes nothing is read no further once so much is queued for it, and given up when even more piles up.
func TestThereIsABoundOfWhatIsQueued(t *testing.T) {
	w := writersOf(t, 4)
	w.Answers = 100
	p := peersOf(w, 1)[0]
	p.sticks()
	p.Append([]byte("."))
	await.True(t, "a writer waits for the peer", func() bool { return p.isStage() == writes && p.has() == "" })
	p.Enter()
	p.Append(make([]byte, 101))
	left := make(chan bool)
	go func() { left <- p.Leave() }()
	await.True(t, "the verb waits", func() bool {
		p.Outbox.mu.Lock()
		defer p.Outbox.mu.Unlock()
		return p.room != nil && p.busy
	})
	p.Append(make([]byte, 300))
	if held, working := p.Held(); held < 402 || !working || p.Closing() {
		t.Errorf("%d bytes are held, at work: %v, closing: %v; want 402 at least, true, false", held, working, p.Closing())
	}
	if p.Append([]byte(".")) || !p.Closing() {
		t.Error("more is queued than an outbox may hold")
	}
	if !<-left {
		t.Error("the verb has not waited")
	}
	p.Wait()
	if want := []edge.Cause{edge.Stalled}; !slices.Equal(p.givenUp()[:1], want) || p.ended != 1 {
		t.Errorf("given up for %v, and ended %d times, want %v and once", p.givenUp(), p.ended, want)
	}
}

// The last frame is behind all that is queued, and nothing is behind it. Then the line ends, as soon as no verb runs.
func TestNothingFollowsTheLastFrame(t *testing.T) {
	p := peersOf(writersOf(t, 4), 1)[0]
	p.Enter()
	p.sticks()
	p.Append([]byte("first,"))
	b, _ := p.Begin()
	p.CommitLast(append(b, "last"...))
	if p.Append([]byte("lost")) || p.AppendQuiet([]byte("lost")) || p.Enter() {
		t.Error("a frame is queued behind the last one, or a verb begins")
	}
	p.letsGo()
	await.True(t, "all is written", func() bool { return p.isStage() == quiet })
	if p.ended != 0 {
		t.Error("the line has ended while a verb runs")
	}
	p.Leave()
	p.Wait()
	if p.has() != "first,last" || p.ended != 1 || len(p.givenUp()) != 0 {
		t.Errorf("the peer has %q, has ended %d times, and was given up for %v; want all, once, nothing", p.has(), p.ended, p.givenUp())
	}
}

func TestALineThatFailsIsGivenUp(t *testing.T) {
	for err, why := range map[error]edge.Cause{os.ErrDeadlineExceeded: edge.Stalled, errors.New("reset"): edge.Lost} {
		p := peersOf(writersOf(t, 4), 1)[0]
		p.err, p.once = err, 0
		ctx := p.Context()
		p.Append([]byte("a frame"))
		p.Wait()
		if ctx.Err() == nil || p.Context().Err() == nil || !slices.Equal(p.givenUp(), []edge.Cause{why}) || p.ended != 1 {
			t.Errorf("%v: given up for %v, ended %d times, its contexts %v, %v", err, p.givenUp(), p.ended, ctx.Err(), p.Context().Err())
		}
	}
}

// A closing connection that takes nothing does not hold its edge up.
func TestAClosingConnectionHasTheLinger(t *testing.T) {
	w := writersOf(t, 4)
	w.Linger = time.Millisecond
	p := peersOf(w, 1)[0]
	p.sticks()
	p.Append([]byte("a frame"))
	p.Shut()
	p.Wait()
	if p.givenUp()[0] != edge.Lost || p.ended != 1 {
		t.Errorf("given up for %v, and ended %d times", p.givenUp(), p.ended)
	}
}
