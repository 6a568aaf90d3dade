package ws

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
)

// stranger watches over a connection that has not said who it is: pings it, and ends it when it has been silent for too long. Once it is bound its session does that.
type stranger struct {
	conn  *conn
	timer edge.Timer
	heard atomic.Int64 // ticks when bytes came last
}

// patience is how often a connection that has not said who it is gets a ping.
func (n node) patience() time.Duration { return min(n.heartbeat, n.timeout/2) }

// watch begins the watch over a connection.
func (c *conn) watch() {
	s := &stranger{conn: c}
	s.heard.Store(agora.Ticks())
	s.timer.Fire = s.look
	c.stranger.Store(s)
	c.door.wheel.Add(&s.timer, c.door.node.patience())
}

// unwatch ends it. The reading goroutine calls it.
func (c *conn) unwatch() {
	if s := c.stranger.Swap(nil); s != nil {
		c.door.wheel.Remove(&s.timer)
	}
}

// look is called each time that the timer fires.
func (s *stranger) look() {
	c := s.conn
	if c.out.Closing() || c.session() != nil {
		return
	}
	if silent := time.Duration(agora.Ticks() - s.heard.Load()); silent > c.door.node.timeout && !c.out.Busy() {
		c.door.stats.Silent.Add(1)
		c.Close(edge.Reason{Cause: edge.Silent, Text: "silent for too long"})
		return
	}
	if err := c.Actor.Check(); err != nil {
		c.Close(edge.Dismissed(err))
		return
	}
	c.control(frame.Ping, nil)
	c.door.wheel.Add(&s.timer, c.door.node.patience())
}

// alive notes that the peer is there.
func (c *conn) alive() {
	if s := c.session(); s != nil {
		s.Alive()
	} else if s := c.stranger.Load(); s != nil {
		s.heard.Store(agora.Ticks())
	}
}
