package deliver

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

// A goroutine made for each chunk that comes alone would have its stack grow each time.
func TestAWriterThatHasEndedWritesForTheNext(t *testing.T) {
	w := writersOf(t, 4)
	p := peersOf(w, 1)[0]
	if n := testing.AllocsPerRun(1000, func() {
		w.call(&p.Outbox)
		for idle(w) == 0 {
			runtime.Gosched()
		}
	}); n != 0 {
		t.Errorf("%.1f allocations for each call, want none", n)
	}
}

// idle returns how many writers wait for an outbox to write for, where none is at one.
func idle(w *Writers) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.atWork > 0 {
		return 0
	}
	return w.idle
}

func TestPeersThatTakeNothingHoldUpNobody(t *testing.T) {
	w := writersOf(t, 4)
	all := peersOf(w, 12)
	for _, p := range all[1:] {
		p.sticks()
		p.Append([]byte("a frame"))
	}
	hears(t, all[0])
	for _, p := range all[1:] {
		p.letsGo()
		await.True(t, "a peer that takes again gets all", func() bool { return p.has() == "a frame" })
	}
	await.True(t, "no more writers are kept than count", func() bool { return 0 < idle(w) && idle(w) <= w.most })
}

// hears holds that a peer gets what it is told.
func hears(t *testing.T, p *peer) {
	t.Helper()
	for k := range 20 {
		want := p.has() + fmt.Sprint(k)
		p.Append([]byte(fmt.Sprint(k)))
		await.True(t, "it is told", func() bool { return p.has() == want })
	}
}

// waitsInPull has a peer be pulled whose session has deliveries wait, as long as an answer to a join is made, until the
// pull is let go of.
func waitsInPull(t *testing.T, p *peer) (letGo func()) {
	t.Helper()
	s := new(edge.Session) // it stands for one that has nothing
	held, release, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		s.Between(func() {
			close(held)
			<-release
			p.Session.Store(nil)
		})
	}()
	<-held
	p.Session.Store(s)
	p.Wake()
	return func() {
		close(release)
		<-over
	}
}

// While an answer to a join is made, which may take as long as the log does, deliveries of that connection wait for it.
func TestAConnectionWhoseDeliveriesWaitHoldsUpNobody(t *testing.T) {
	w := writersOf(t, 4)
	all := peersOf(w, 12)
	for _, p := range all[1:] {
		defer waitsInPull(t, p)()
	}
	hears(t, all[0])
	for _, p := range all[1:] {
		await.True(t, "a delivery waits", func() bool { return p.isStage() == pulls })
	}
}

// One for whom something comes up all the time is written for in turns with the others, until its writer has to wait:
// that one is its own then.
func TestAWriterThatCountsWritesARoundOnly(t *testing.T) {
	all := writersOf(t, 0) // none of which comes by itself
	p := peersOf(all, 1)[0]
	rounds := 0
	p.wrote = func() {
		if rounds++; rounds < 10 {
			p.Append([]byte("."))
		}
	}
	w := &Writer{all: all, counts: true}
	p.Append([]byte("."))
	if more := p.write(w); !more || rounds != 1 {
		t.Fatalf("after %d rounds more is to come: %v, want 1, true", rounds, more)
	}
	w.counts = false
	if more := p.write(w); more || rounds != 10 {
		t.Fatalf("of a writer that does not count, after %d rounds more is to come: %v, want 10, false", rounds, more)
	}
	if more := p.write(w); more || rounds != 10 {
		t.Fatalf("a writer that comes late writes round %d", rounds)
	}
}

func TestTheOneThatIsDueFirstIsWrittenForFirst(t *testing.T) {
	var w Writers
	var want []*Outbox
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 20000 {
		// There are more and more, and then fewer.
		if random.IntN(20000) > step {
			o := new(Outbox)
			want = append(want, o)
			w.enqueue(o)
		} else {
			var next *Outbox
			if len(want) > 0 {
				next, want = want[0], want[1:]
			}
			if got := w.dequeue(); got != next {
				t.Fatalf("step %d: not the one that was due first", step)
			}
		}
		if n := len(w.due) - w.first; n != len(want) || cap(w.due) > 8*max(n, keepDue) {
			t.Fatalf("step %d: %d are due, want %d, with room for %d", step, n, len(want), cap(w.due))
		}
	}
	for w.dequeue() != nil {
	}
	if cap(w.due) > keepDue {
		t.Errorf("there is room for %d while none is due", cap(w.due))
	}
}

// What needs no log does not wait for one that reads it.
func TestWhatIsQueuedGoesOutWhileAPullWaits(t *testing.T) {
	p := peersOf(writersOf(t, 4), 1)[0]
	letGo := waitsInPull(t, p)
	hears(t, p)
	letGo()
	await.True(t, "nobody writes any more", func() bool { return p.isStage() == quiet })
	hears(t, p)
}
