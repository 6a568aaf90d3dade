//go:build chaos

package overload

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
)

// work is pairs of agents at two edges each that send one-shots with receipts: what a cluster has to do at any time.
type work struct {
	t        *testing.T
	receipts atomic.Int64
	pause    atomic.Int64 // nanoseconds between two messages of a pair; 0: as fast as receipts come
	done     chan struct{}
	running  sync.WaitGroup
}

const (
	pairs    = 8
	underWay = 16 // messages of a pair without a receipt
)

// halfLoad has a cluster do half of what it can, until the test is over: half of the rate at which pairs get receipts
// when they send as fast as those come. What overloads it comes on top.
func halfLoad(t *testing.T, urls ...string) {
	t.Helper()
	w := &work{t: t, done: make(chan struct{})}
	for k := range pairs {
		w.pair(urls[k%len(urls)], urls[(k+1)%len(urls)], k)
	}
	t.Cleanup(func() {
		close(w.done)
		w.running.Wait()
	})
	full := w.rate()
	w.pause.Store(int64(2 * pairs * time.Second / time.Duration(full)))
	half := w.rate()
	t.Logf("full load is %d messages a second, half of it %d", full, half)
	if half < full/4 || half > full*3/4 {
		t.Errorf("%d messages a second are not half of %d", half, full)
	}
}

// rate returns how many receipts a second come, once it has gone on for a moment.
func (w *work) rate() int64 {
	w.t.Helper()
	const warm, looked = 500 * time.Millisecond, time.Second
	<-time.After(warm)
	n := w.receipts.Load()
	<-time.After(looked)
	if n = w.receipts.Load() - n; n == 0 {
		w.t.Fatalf("%d receipts came in %v", n, looked)
	}
	return n
}

// pair has an agent send another, until the test is over.
func (w *work) pair(from, to string, k int) {
	w.t.Helper()
	r, err := join(to, fmt.Sprintf("works-for-%d", k), loadgen.Target{})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := join(from, fmt.Sprintf("worker-%d", k), loadgen.Target{})
	if err != nil {
		w.t.Fatal(err)
	}
	free := make(chan struct{}, underWay)
	w.running.Go(func() { w.send(s, r.id, free) })
	w.running.Go(func() {
		w.hear(s, func(f []byte) {
			if field(f, "type") == "receipt" {
				w.receipts.Add(1)
				<-free
			}
		})
	})
	n := 0
	w.running.Go(func() {
		w.hear(r, func(f []byte) {
			if field(f, "type") != "message" {
				return
			}
			if n++; n%64 == 0 {
				r.say(`{"type":"ack","seq":%s}`, field(f, "seq")) // an error ends its hearing as well
			}
		})
	})
	w.running.Go(func() {
		<-w.done
		s.socket.Close()
		r.socket.Close()
	})
}

func (w *work) send(a *agent, to string, free chan struct{}) {
	body := strings.Repeat("x", 100)
	next := time.Now()
	for n := 1; ; n++ {
		select {
		case <-w.done:
			return
		case free <- struct{}{}:
		}
		now := time.Now()
		if next = next.Add(time.Duration(w.pause.Load())); next.Before(now.Add(-10 * time.Millisecond)) {
			next = now // what could not be sent in time is not sent in one go
		}
		if wait := next.Sub(now); wait > 0 {
			<-time.After(wait)
		}
		if err := a.say(`{"type":"send","to":%q,"n":%d,"payload":%q}`, to, n, body); err != nil {
			return
		}
	}
}

// hear gives what comes to take, until the test is over. Nobody at work may be refused anything, or lose its
// connection.
func (w *work) hear(a *agent, take func(f []byte)) {
	for {
		f, err := a.Next()
		select {
		case <-w.done:
			return
		default:
		}
		if err != nil {
			w.t.Errorf("%s lost its connection: %v", a.id, err)
			return
		}
		if field(f, "type") == "error" {
			w.t.Errorf("%s got %s", a.id, f)
		}
		take(f)
	}
}
