package presence

import (
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// How often an embedded server's clock of expiry is advanced.
const (
	tick   = 100 * time.Millisecond // at most
	slow   = time.Second            // at least
	rarely = 50                     // in between: times as long as it took
)

// Server is a presence server inside this process, for dev and tests.
type Server struct {
	mini *miniredis.Miniredis
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once

	mu    sync.Mutex // guards the field below
	conns map[*conn]struct{}
}

// Embed starts a presence server in this process, on a free loopback port; it
// expires keys by the true elapsed time.
func Embed() (*Server, error) {
	s, err := serve((*miniredis.Miniredis).Start)
	if err == nil {
		s.done.Go(s.expire)
	}
	return s, err
}

// EmbedInProcess starts a presence server that has no address: only Dial reaches it. It expires keys by the wall clock,
// whenever it is asked something, and nothing in it runs meanwhile: so it works under the time of [testing/synctest].
func EmbedInProcess() (*Server, error) {
	return serve(func(m *miniredis.Miniredis) error {
		m.ClockTTL(true)
		c, err := m.Dial() // which starts it
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func serve(start func(*miniredis.Miniredis) error) (*Server, error) {
	s := &Server{mini: miniredis.NewMiniRedis(), stop: make(chan struct{}), conns: map[*conn]struct{}{}}
	if err := start(s.mini); err != nil {
		return nil, err
	}
	if err := interpret(s.mini); err != nil {
		s.mini.Close()
		return nil, err
	}
	return s, nil
}

// Dial connects to the server within the process. Anyone who writes to the connection does the server's work: commands
// have to be answered at once.
func (s *Server) Dial() (net.Conn, error) {
	srv := s.mini.Server()
	if srv == nil {
		return nil, net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newConn(s, srv)
	s.conns[c] = struct{}{}
	return c, nil
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Addr returns the server's address, host and port. A server of EmbedInProcess has none.
func (s *Server) Addr() string { return s.mini.Addr() }

// Close stops the server and waits for it. Everything in it is lost.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		s.done.Wait()
		s.mini.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.hangUp()
		}
	})
}

// expire advances the server's keys, which expire by nothing else. All are looked at: where they are many, more rarely.
func (s *Server) expire() {
	t := time.NewTimer(tick)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			now := time.Now()
			s.mini.FastForward(now.Sub(last))
			last = now
			t.Reset(min(max(tick, rarely*time.Since(now)), slow))
		}
	}
}
