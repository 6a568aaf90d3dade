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

	heartbeat atomic.Bool // the agent knows agent.heartbeat
}

// alive notes a sign of life.
func (k *keepalive) alive() { k.heard.Store(agora.Ticks()) }

// quiet returns for how long there has been none.
func (k *keepalive) quiet() time.Duration { return time.Duration(agora.Ticks() - k.heard.Load()) }

// Alive notes a sign of life: an inbound frame or pong, or bytes that the socket took.
func (i *inbound) Alive() { i.keepalive.alive() }

// probeMark is in the data of a ping that probes; those that confirm count from 1.
const probeMark = 1 << 63

// probe asks the connection for a sign of life, and waits for it. Its pong is
// one. Anything else that comes counts only when no pong has come in time: of
// a socket that was cut, what its agent had sent before may still be read, and
// then its end, which ends the session.
func (i *inbound) probe(ctx context.Context) bool {
	asked, number := agora.Ticks(), i.keepalive.probes.Add(1)
	i.conn.Notify(Notice{Kind: NoticePing, Data: uint64(number) | probeMark})
	for {
		if i.life.ended() {
			return false
		}
		if i.keepalive.answered.Load() >= number {
			return true
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			// Where the edge itself does not read, the agent can't be blamed.
			return i.out.blocked.Load() > 0 || i.keepalive.heard.Load() > asked
		}
	}
}

// schedule arms the session's timer, where it is not due sooner.
func (i *inbound) schedule(d time.Duration) { i.node.wheel.Sooner(&i.keepalive.timer, d) }

// tick looks after a connection: it pings while frames are unconfirmed, gives
// a sign of life now and then, and closes what is dead. It runs on the wheel
// and never blocks.
func (i *inbound) tick() {
	i.keepalive.soon.Store(false)
	data, confirm, asked := i.cursor.preparePing()
	if left, ends := i.credentialsLeft(); i.life.ended() || ends && left <= 0 && !i.revalidate() {
		return
	}
	cfg := &i.node.cfg
	quiet := i.keepalive.quiet()
	if i.out.blocked.Load() > 0 {
		quiet = 0 // it is the edge that does not read
	}
	if quiet >= cfg.Timeout {
		i.conn.Close(Reason{Cause: Silent, Text: "no sign of life"})
		return
	}
	n := Notice{Kind: NoticePing, Data: data}
	if now := agora.Ticks(); i.keepalive.heartbeat.Load() && time.Duration(now-i.keepalive.beaten) >= cfg.Heartbeat-cfg.Confirm {
		i.keepalive.beaten = now
		n.At = i.Now()
	}
	switch {
	case !asked:
		i.conn.Notify(n)
	case !n.At.IsZero(): // the pong of an earlier ping is awaited
		i.conn.Notify(Notice{Kind: NoticeHeartbeat, At: n.At})
	}
	i.rearm(confirm, quiet)
}

// rearm looks again when a pong is due, or when the next sign of life is, or when the credentials end.
func (i *inbound) rearm(confirm bool, quiet time.Duration) {
	cfg := &i.node.cfg
	next := min(cfg.Heartbeat, max(cfg.Timeout-quiet, cfg.Confirm))
	if confirm {
		next = cfg.Confirm
	}
	if left, ends := i.credentialsLeft(); ends {
		next = min(next, max(left, 0))
	}
	i.schedule(next)
}
