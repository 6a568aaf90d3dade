package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// Now returns the cluster's time, the same at every edge whatever its machine's clock says.
func (s *Session) Now() time.Time { return s.node.cfg.Broker.Now() }

// Alive notes a sign of life: an inbound frame or pong, or bytes that the socket took.
func (s *Session) Alive() { s.heard.Store(agora.Ticks()) }

// probeMark is in the data of a ping that probes; those that confirm count from 1.
const probeMark = 1 << 63

// probe asks the connection for a sign of life, and waits for it. Its pong is
// one. Anything else that comes counts only when no pong has come in time: of
// a socket that was cut, what its agent had sent before may still be read, and
// then its end, which ends the session.
func (s *Session) probe(ctx context.Context) bool {
	asked, mark := agora.Ticks(), s.probes.Add(1)|probeMark
	s.conn.Notify(Notice{Kind: NoticePing, Data: mark})
	for {
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		if over {
			return false
		}
		if s.answered.Load() >= mark {
			return true
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			// Where the edge itself does not read, the agent can't be blamed.
			return s.blocked.any() || s.heard.Load() > asked
		}
	}
}

// schedule arms the session's timer, where it is not due sooner.
func (s *Session) schedule(d time.Duration) { s.node.wheel.Sooner(&s.timer, d) }

// tick looks after a connection: it pings while frames are unconfirmed, gives
// a sign of life now and then, and closes what is dead. It runs on the wheel
// and never blocks.
func (s *Session) tick() {
	s.soon.Store(false)
	s.mu.Lock()
	over, heartbeat, asked := s.over, s.heartbeat, s.pingPending
	data, confirm := s.preparePing()
	s.mu.Unlock()
	if left, ends := s.credentialsLeft(); over || ends && left <= 0 && !s.revalidate() {
		return
	}
	cfg := &s.node.cfg
	quiet := time.Duration(agora.Ticks() - s.heard.Load())
	if s.blocked.any() {
		quiet = 0 // it is the edge that does not read
	}
	if quiet >= cfg.Timeout {
		s.conn.Close(Reason{Cause: Silent, Text: "no sign of life"})
		return
	}
	n := Notice{Kind: NoticePing, Data: data}
	if now := agora.Ticks(); heartbeat && time.Duration(now-s.beaten) >= cfg.Heartbeat-cfg.Confirm {
		s.beaten = now
		n.At = s.Now()
	}
	switch {
	case !asked:
		s.conn.Notify(n)
	case !n.At.IsZero(): // the pong of an earlier ping is awaited
		s.conn.Notify(Notice{Kind: NoticeHeartbeat, At: n.At})
	}
	s.rearm(confirm, quiet)
}

// rearm looks again when a pong is due, or when the next sign of life is, or when the credentials end.
func (s *Session) rearm(confirm bool, quiet time.Duration) {
	cfg := &s.node.cfg
	next := min(cfg.Heartbeat, max(cfg.Timeout-quiet, cfg.Confirm))
	if confirm {
		next = cfg.Confirm
	}
	if left, ends := s.credentialsLeft(); ends {
		next = min(next, max(left, 0))
	}
	s.schedule(next)
}
