package ws

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/buffer"
)

// A goroutine made for each chunk that comes alone would have its stack grow each time.
func TestAWriterThatHasEndedWritesForTheNext(t *testing.T) {
	d, _ := serve(t, Config{}, node{})
	c := newConn(d, edge.Admission{})
	if n := testing.AllocsPerRun(1000, func() {
		d.writers.start(c)
		for idle(d) == 0 {
			runtime.Gosched()
		}
	}); n != 0 {
		t.Errorf("%.1f allocations for each start, want none", n)
	}
}

// idle returns how many of a door's writers wait for a connection to write for, where none is at one.
func idle(d *Door) int {
	d.writers.mu.Lock()
	defer d.writers.mu.Unlock()
	if d.writers.atWork > 0 {
		return 0
	}
	return d.writers.idle
}

// connsOf connects raw peers, and returns both ends.
func connsOf(t testing.TB, d *Door, s *httptest.Server, n int) (cs []*conn, peers []net.Conn) {
	t.Helper()
	known := map[*conn]bool{}
	for range n {
		peer := dial(t, s).NetConn()
		peers = append(peers, peer)
		await.True(t, "it is connected", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			for c := range d.conns {
				if !known[c] {
					known[c] = true
					cs = append(cs, c)
				}
			}
			return len(cs) == len(peers)
		})
	}
	return cs, peers
}

// flood8MiB queues more for a connection than the system takes for a peer that reads nothing.
func flood8MiB(c *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.pending = buffer.Get()
	c.out.pending.B = append(c.out.pending.B, make([]byte, 8<<20)...)
	c.out.start()
}

func TestPeersThatTakeNothingHoldUpNobody(t *testing.T) {
	t.Parallel()
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	d.writers.most = 4
	cs, peers := connsOf(t, d, s, 12)
	for _, c := range cs[1:] {
		flood8MiB(c)
	}
	for k := range uint64(20) { // by a writer, as every delivery goes
		cs[0].out.control(frame.Ping, binary.BigEndian.AppendUint64(nil, k))
		if op, body := nextFrame(t, peers[0]); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d", op, body, k)
		}
	}
	for k, peer := range peers[1:] {
		peer.SetReadDeadline(time.Now().Add(await.Long))
		if n, err := io.CopyN(io.Discard, peer, 8<<20); err != nil {
			t.Fatalf("peer %d got %d bytes: %v", k+1, n, err)
		}
	}
	await.True(t, "no more writers are kept than count", func() bool { return 0 < idle(d) && idle(d) <= d.writers.most })
}

// While an answer to a join is made, which may take as long as the log does, deliveries of that connection wait for it.
func TestAConnectionWhoseDeliveriesWaitHoldsUpNobody(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	d.writers.most = 4
	cs, peers := connsOf(t, d, s, 12)
	for _, c := range cs[1:] {
		s := new(edge.Session) // it stands for one that has nothing
		held, release, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			s.Between(func() {
				close(held)
				<-release
				c.session.Store(nil)
			})
		}()
		<-held
		c.session.Store(s)
		c.Wake()
		defer func() {
			close(release)
			<-over
		}()
	}
	for k := range uint64(20) {
		cs[0].out.control(frame.Ping, binary.BigEndian.AppendUint64(nil, k))
		if op, body := nextFrame(t, peers[0]); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d", op, body, k)
		}
	}
	for _, c := range cs[1:] {
		await.True(t, "a delivery waits", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.out.writing && !c.out.woken
		})
	}
}

// One for whom something comes up all the time is written for in turns with the others, until its writer has to wait: that one is its own then.
func TestAWriterThatCountsWritesARoundOnly(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, _ := quietConn(t, d, s)
	rounds := 0
	w := &writer{all: &d.writers, counts: true, attempt: newAttempt(), waits: func() {}}
	w.attempt.write = func(uintptr) {
		w.attempt.taken = len(w.attempt.bytes)
		if rounds++; rounds < 10 {
			c.out.control(frame.Ping, nil)
		}
	}
	if !c.out.seize() {
		t.Fatal("a quiet connection is at work")
	}
	c.out.control(frame.Ping, nil)
	if more := c.out.write(w); !more || rounds != 1 {
		t.Fatalf("after %d rounds more is to come: %v, want 1, true", rounds, more)
	}
	w.counts = false
	if more := c.out.write(w); more || rounds != 10 {
		t.Fatalf("of a writer that does not count, after %d rounds more is to come: %v, want 10, false", rounds, more)
	}
}

func TestWhoIsDueFirstIsWrittenForFirst(t *testing.T) {
	var w writers
	var want []*conn
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 20000 {
		// There are more and more, and then fewer.
		if random.IntN(20000) > step {
			c := new(conn)
			want = append(want, c)
			w.enqueue(c)
		} else {
			var next *conn
			if len(want) > 0 {
				next, want = want[0], want[1:]
			}
			if got := w.dequeue(); got != next {
				t.Fatalf("step %d: not who was due first", step)
			}
		}
		if n := len(w.due) - w.first; n != len(want) || cap(w.due) > 8*max(n, keepDue) {
			t.Fatalf("step %d: %d are due, want %d, with room for %d", step, n, len(want), cap(w.due))
		}
	}
	for w.dequeue() != nil {
	}
	if cap(w.due) > keepDue {
		t.Errorf("there is room for %d while nobody is due", cap(w.due))
	}
}

// BenchmarkFrameForEach is one frame for each of 200 connections, by whatever writers there are, until their sockets have all of it.
func BenchmarkFrameForEach(b *testing.B) {
	d, s := serve(b, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	cs, peers := connsOf(b, d, s, 200)
	for _, p := range peers {
		go io.Copy(io.Discard, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range cs {
			c.out.control(frame.Ping, nil)
		}
		for idle(d) == 0 {
			runtime.Gosched()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(cs)), "ns/frame")
}

// What needs no log does not wait for one that reads it.
func TestWhatIsQueuedGoesOutWhileAPullWaits(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	cs, peers := connsOf(t, d, s, 1)
	c, session := cs[0], new(edge.Session) // it stands for one that has nothing
	held, release, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		session.Between(func() {
			close(held)
			<-release
			c.session.Store(nil)
		})
	}()
	<-held
	c.session.Store(session)
	c.Wake()
	for k := range uint64(20) {
		c.out.control(frame.Ping, binary.BigEndian.AppendUint64(nil, k))
		if op, body := nextFrame(t, peers[0]); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d", op, body, k)
		}
	}
	close(release)
	<-over
	await.True(t, "nobody writes any more", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.out.writing && c.out.beside.state == besideNone
	})
	c.out.control(frame.Ping, nil)
	if op, _ := nextFrame(t, peers[0]); op != frame.Ping {
		t.Fatalf("frame %d, want a ping", op)
	}
}
