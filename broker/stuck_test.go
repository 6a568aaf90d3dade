package broker

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// A server that is stopped takes what sockets hold and then nothing. The client's writing waits for it, under a lock that whoever
// has something to say needs as well.
func TestAServerThatTakesNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	url, stick := stickyProxy(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = url })
	const lanes = 16 // of 700 KB each: more than sockets hold
	results := make(chan Result, lanes)
	var all [lanes]*Lane
	for k := range all {
		all[k] = b.Lane(LaneConfig{From: "alice", Session: "s1", Epoch: 1, To: agora.ToAgent("default", agora.AgentID(fmt.Sprint("bob-", k)))})
		defer all[k].Close()
		store(t, all[k], text("before"))
	}
	stick()
	begun := time.Now()
	for _, l := range all {
		go l.Put(text(strings.Repeat("x", 700<<10)), func(r Result) { results <- r })
	}
	for range all {
		select {
		case r := <-results:
			if r.Err != nil {
				t.Errorf("after %v: %v", time.Since(begun), r.Err)
			}
		case <-time.After(patience):
			t.Fatalf("no answer after %v", time.Since(begun))
		}
	}
}

// stickyProxy passes on what goes between a server and whoever connects at the URL, until stick is called: connections that are there
// then take nothing any more.
func stickyProxy(t *testing.T, s *Server) (proxy string, stick func()) {
	t.Helper()
	u, err := url.Parse(strings.Split(s.URL(), ",")[0])
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg    sync.WaitGroup
		over  = make(chan struct{})
		mu    sync.Mutex // guards the fields below
		conns []net.Conn
		stuck = new(atomic.Bool) // of the connections that come now
	)
	forward := func(to, from net.Conn, stuck *atomic.Bool) {
		buf := make([]byte, 4<<10)
		for {
			if stuck.Load() {
				<-over
				return
			}
			n, err := from.Read(buf)
			if _, lost := to.Write(buf[:n]); err != nil || lost != nil {
				to.Close()
				return
			}
		}
	}
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", u.Host)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, near, far)
			now := stuck
			mu.Unlock()
			wg.Go(func() { forward(far, near, now) })
			wg.Go(func() {
				_, _ = io.Copy(near, far) // ends with either connection
				near.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(over)
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "nats://" + l.Addr().String(), func() {
		mu.Lock()
		defer mu.Unlock()
		stuck.Store(true)
		stuck = new(atomic.Bool)
	}
}
