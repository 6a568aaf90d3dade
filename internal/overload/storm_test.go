//go:build chaos

package overload

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/loadgen"
)

// roamer is an agent that comes back wherever it can, and says what it has.
type roamer struct {
	id    string
	urls  []string
	token string
	last  uint64
	conn  atomic.Pointer[agent]
	calm  bool // it waits for as long as it is asked to

	got, repeated atomic.Int64 // messages, and those marked redelivered
	back          []time.Time  // when it was registered again; its goroutine's
}

// connect comes to be registered at some edge; it tries until over says so.
func (r *roamer) connect(first int, over *atomic.Bool) error {
	var err error
	for k := first; !over.Load(); k++ {
		var conn *agent
		if conn, err = join(r.urls[k%len(r.urls)], r.id, loadgen.Target{Resume: r.token, After: r.last}); err == nil {
			r.conn.Store(conn)
			r.token = conn.Token
			r.last = max(r.last, conn.Last)
			return nil
		}
		<-time.After(200 * time.Millisecond)
	}
	return err
}

// roam listens, and comes back whenever the connection goes, until over.
func (r *roamer) roam(start int, over *atomic.Bool) {
	for k := start; ; k++ {
		conn := r.conn.Load()
		if over.Load() {
			conn.socket.Close()
			return
		}
		var when time.Time
		for {
			f, err := conn.Next()
			if err != nil {
				break
			}
			switch field(f, "type") {
			case "message":
				r.got.Add(1)
				r.last = max(r.last, number(f, "seq"))
				if field(f, "redelivered") == "true" {
					r.repeated.Add(1)
				}
			case "agent.reconnect":
				when = time.Now().Add(time.Duration(number(f, "after_ms")) * time.Millisecond)
			}
		}
		conn.socket.Close()
		if r.calm {
			<-time.After(time.Until(when))
		}
		if over.Load() || r.connect(k+1, over) != nil {
			return
		}
		r.back = append(r.back, time.Now())
	}
}

// horde is many roamers.
type horde struct {
	t       *testing.T
	all     []*roamer
	over    atomic.Bool
	roaming sync.WaitGroup
}

// gather connects n roamers, at edge k of the cluster or, where that is negative, at all of them.
func gather(t *testing.T, c *agoratest.Processes, n, k int, calm bool) *horde {
	t.Helper()
	h := &horde{t: t, all: make([]*roamer, n)}
	crowd(t, n, func(i int) error {
		r := &roamer{id: fmt.Sprintf("roamer-%d", i), urls: c.URLs(), calm: calm}
		h.all[i] = r
		first := k
		if k < 0 {
			first = i % len(r.urls)
		}
		return r.connect(first, &h.over)
	})
	for i, r := range h.all {
		h.roaming.Go(func() { r.roam(i, &h.over) })
	}
	t.Cleanup(h.end)
	return h
}

// end has all of them go.
func (h *horde) end() {
	h.over.Store(true)
	for _, r := range h.all {
		r.conn.Load().socket.Close()
	}
	h.roaming.Wait()
}

// write sends each of them a message, and fails the test for what is not stored.
func (h *horde) write(url, id string) {
	h.t.Helper()
	a, err := join(url, id, loadgen.Target{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer a.socket.Close()
	for i, r := range h.all {
		for stored := false; !stored; {
			if err := a.say(`{"type":"send","id":"m-%d","to":%q,"payload":1}`, i, r.id); err != nil {
				h.t.Fatal(err)
			}
			f := []byte{}
			for field(f, "request_id") == "" {
				if f, err = a.Next(); err != nil {
					h.t.Fatal(err)
				}
			}
			if stored = field(f, "type") == "receipt"; !stored && field(f, "code") != "UNAVAILABLE" {
				h.t.Fatalf("a message to %s: %s", r.id, f)
			}
		}
	}
}

// have waits until each has got n messages, and no more.
func (h *horde) have(n int64) {
	h.t.Helper()
	until(h.t, 2*time.Minute, fmt.Sprintf("everybody has %d messages", n), func() bool {
		for _, r := range h.all {
			if r.got.Load() < n {
				return false
			}
		}
		return true
	})
	for _, r := range h.all {
		if got, again := r.got.Load(), r.repeated.Load(); got != n || again > 0 {
			h.t.Errorf("%s got %d messages, %d of them marked as repeated; want %d and none", r.id, got, again, n)
		}
	}
}

// TestAStormOfAgentsAfterAnEdgeDiesIsSurvived kills an edge all of whose agents come back at once, at the others.
func TestAStormOfAgentsAfterAnEdgeDiesIsSurvived(t *testing.T) {
	c := start(t)
	rest := everybodyElse{t, []string{c.Edges[1].URL(), c.Edges[2].URL()}}
	n := many(5000, 500)
	h := gather(t, c, n, 0, false)
	h.write(c.Edges[1].URL(), "before")
	h.have(1)
	halfLoad(t, c.Edges[1].URL(), c.Edges[2].URL())
	before := rest.median(func() { <-time.After(3 * time.Second) })
	one, two := watchMemory(c.Edges[1]), watchMemory(c.Edges[2])
	var took time.Duration
	now := rest.median(func() {
		begun := time.Now()
		c.Edges[0].Kill()
		h.write(c.Edges[1].URL(), "after") // most of them are away
		h.have(2)
		took = time.Since(begun)
	})
	t.Logf("%d agents have what was sent to them %v after their edge died", n, took)
	rest.unmoved(before, now)
	one.bounded(t, n)
	two.bounded(t, n)
}

// TestARollingDeployLosesAndRepeatsNothing drains one edge after the other, and starts it again, while agents talk.
func TestARollingDeployLosesAndRepeatsNothing(t *testing.T) {
	const rate = 20
	c := start(t, "--drain.rate", fmt.Sprint(rate))
	talk := agoratest.StartTalk(t, c.URLs, agoratest.TalkOptions{})
	h := gather(t, c, many(240, 90), -1, true)
	written := int64(0)
	for k, e := range c.Edges {
		talk.Progress(5)
		e.Drain()
		h.write(c.Edges[(k+1)%3].URL(), fmt.Sprintf("writer-%d", k))
		written++
		e.Start()
		e.Ready()
		h.have(written)
	}
	total, refused := talk.Settle()
	t.Logf("%d frames of the talk arrived, %d were refused", total, refused)
	h.end()
	var back []time.Time
	for _, r := range h.all {
		back = append(back, r.back...)
	}
	t.Logf("%d agents came back %d times", len(h.all), len(back))
	for _, from := range back {
		n := 0
		for _, at := range back {
			if at.Sub(from) >= 0 && at.Sub(from) < time.Second {
				n++
			}
		}
		if n > rate*5/4+2 { // a busy machine may register a few late; 22 is usual, as a second that begins with one holds one more than the rate
			t.Errorf("%d agents came back within a second, want %d at most", n, rate)
			break
		}
	}
}
