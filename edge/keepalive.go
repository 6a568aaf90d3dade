package edge

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// keepalive is what a connection's signs of life are judged by.
type keepalive struct {
	timer    Timer
	beaten   int64         // ticks when the last agent.heartbeat went; the wheel's own
	heard    atomic.Int64  // ticks at the last sign of life
	probes   atomic.Uint32 // pings that probed
	answered atomic.Uint32 // number of the last one whose pong has come
	soon     atomic.Bool   // the timer is armed to confirm
}

// alive notes a sign of life.
func (k *keepalive) alive() { k.heard.Store(agora.Ticks()) }

// quiet returns for how long there has been none.
func (k *keepalive) quiet() time.Duration { return time.Duration(agora.Ticks() - k.heard.Load()) }

// Alive notes a sign of life: an inbound frame or pong, or bytes that the socket took.
func (s *Session) Alive() { s.keepalive.alive() }

// probeMark is in the data of a ping that probes; those that confirm count from 1.
const probeMark = 1 << 63

// keeper looks after the connection of a session. It never blocks, but for probe.
type keeper struct{ *Session }

// probe asks the connection for a sign of life, and waits for it. Its pong is
// one. Anything else that comes counts only when no pong has come in time: of
// a socket that was cut, what its agent had sent before may still be read, and
// then its end, which ends the session.
func (s keeper) probe(ctx context.Context) bool {
	asked, number := agora.Ticks(), s.keepalive.probes.Add(1)
	s.conn.Notify(Notice{Kind: NoticePing, Data: uint64(number) | probeMark})
	for {
		if s.life.ended() {
			return false
		}
		if s.keepalive.answered.Load() >= number {
			return true
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			// Where the edge itself does not read, the agent can't be blamed.
			return s.out.blocked.any() || s.keepalive.heard.Load() > asked
		}
	}
}

// schedule arms the session's timer, where it is not due sooner.
func (s keeper) schedule(d time.Duration) { s.node.wheel.Sooner(&s.keepalive.timer, d) }

// tick looks after a connection: it pings while frames are unconfirmed, gives
// a sign of life now and then, and closes what is dead. It runs on the wheel
// and never blocks.
func (s keeper) tick() {
	s.keepalive.soon.Store(false)
	data, confirm, asked := s.cursor.preparePing()
	if left, ends := s.credentialsLeft(); s.life.ended() || ends && left <= 0 && !s.revalidate() {
		return
	}
	cfg := &s.node.cfg
	quiet := s.keepalive.quiet()
	if s.out.blocked.any() {
		quiet = 0 // it is the edge that does not read
	}
	if quiet >= cfg.Timeout {
		s.conn.Close(Reason{Cause: Silent, Text: "no sign of life"})
		return
	}
	n := Notice{Kind: NoticePing, Data: data}
	if now := agora.Ticks(); s.profile.heartbeat.Load() && time.Duration(now-s.keepalive.beaten) >= cfg.Heartbeat-cfg.Confirm {
		s.keepalive.beaten = now
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
func (s keeper) rearm(confirm bool, quiet time.Duration) {
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
