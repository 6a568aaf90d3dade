package ws

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
)

// conn is one connection. It is its session's edge.Conn.
type conn struct {
	door           *Door
	edge.Admission // which its end releases
	socket         net.Conn
	in             reader
	verbs          verbs
	out            outbox
	run            atomic.Pointer[span] // in which its verbs and pulls run; nil while nothing does
	dead           atomic.Bool          // the socket was given up: a span that begins is over

	session  atomic.Pointer[edge.Session] // nil until bound; set once, by the reading goroutine
	stranger atomic.Pointer[stranger]     // nil once it is bound
	traffic  traffic                      // the verb's and the writing goroutine's

	mu      sync.Mutex // guards the fields below, and the outbox's
	life    life
	resting bool       // the span is let go of once neither a verb nor a writer runs
	busy    bool       // a verb runs, or waits for room: the socket is not read
	goodbye bool       // the agent said that it leaves
	why     edge.Cause // the connection ends; zero while it does not
	code    int32      // of the first close frame
	linger  *time.Timer
	faults  flood
}

// life is how far a connection has come. It only grows.
type life uint8

const (
	opened  life = iota // frames are queued and verbs begin
	closing             // the close frame is queued, or the socket is gone: nothing is queued any more
	settled             // the session knows that the socket is gone
)

func (l life) String() string { return [...]string{"opened", "closing", "settled"}[l] }

// newConn returns a connection of a door that has no socket yet.
func newConn(d *Door, a edge.Admission) *conn {
	c := &conn{door: d, Admission: a}
	c.in.conn, c.verbs.conn, c.out.conn = c, c, c
	return c
}

// begin binds the connection where its URL says to whom, and has it read from. Reading ends
// with finish, by whichever goroutine reads last: until then each begins the next one.
func (c *conn) begin(h *hello) {
	c.watch()
	if h != nil {
		c.verbs.bindAtConnect(h)
		c.rest()
	}
	c.door.work.Go(c.in.await)
}

// finish ends the connection that can't be read any more. When it returns the session knows, and the
// writer and the open calls have ended.
func (c *conn) finish(err error) {
	c.end(err)
	c.unwatch()
	c.socket.Close()
	c.giveUp()
	c.verbs.endCalls()
	c.door.inner.Delete(c)
	c.door.dismiss(c)
}

// span is a time in which a connection is at work.
type span struct {
	context.Context
	over context.CancelFunc
}

// context returns what verbs and pulls run under: it is over when the socket is given up.
func (c *conn) context() context.Context {
	if s := c.run.Load(); s != nil {
		return s
	}
	s := new(span)
	s.Context, s.over = context.WithCancel(context.Background())
	if !c.run.CompareAndSwap(nil, s) {
		return c.context()
	}
	if c.dead.Load() {
		s.over()
	}
	return s
}

// giveUp ends the verbs and pulls that run, and those to come.
func (c *conn) giveUp() {
	c.dead.Store(true)
	if s := c.run.Load(); s != nil {
		s.over()
	}
}

// rest lets go of what only a connection at work needs, once its writer has ended. No verb runs.
func (c *conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = true
	c.restLocked()
}

// restLocked does what rest said, where neither a verb nor a writer runs. mu is held.
func (c *conn) restLocked() {
	if c.resting && !c.out.writing && !c.busy {
		c.run.Store(nil)
		c.resting = false
	}
}

// end settles what is left once nothing can be read any more.
func (c *conn) end(err error) {
	polite := errors.Is(err, errClosed)
	b, broken := errors.AsType[frame.Breach](err)
	if broken {
		c.condemn(b)
	}
	c.mu.Lock()
	c.shutLocked()
	c.mu.Unlock()
	if !polite && !broken {
		c.socket.Close()
		c.giveUp()
	}
	c.mu.Lock()
	for c.out.writing {
		c.out.wait()
	}
	c.stopTimers()
	c.mu.Unlock()
	c.settle(func() {})
	if broken { // closing now would make the peer's system throw the close frame away
		c.socket.SetReadDeadline(time.Now().Add(c.door.cfg.Linger))
		io.Copy(io.Discard, c.socket)
	}
}

// enter begins a verb; false when the connection is closing and no verb may begin.
func (c *conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = c.life == opened
	c.MarkActive()
	return c.busy
}

// leave ends a verb, and blocks while the peer does not take its answers.
func (c *conn) leave() {
	c.mu.Lock()
	waited := false
	for c.out.crammed() {
		waited = true
		c.out.wait()
	}
	if waited {
		c.alive() // it could not be heard meanwhile
	}
	c.busy = false
	now := c.life
	c.mu.Unlock()
	if now != opened {
		c.settle(func() {})
	}
}

// settle tells the session that the socket is gone, once neither a verb nor a
// writer runs any more: whichever of them ends last does it. That may block, and waits is called before.
func (c *conn) settle(waits func()) {
	c.mu.Lock()
	s := c.session.Load()
	if c.life != closing || c.out.writing || c.busy || s == nil {
		c.mu.Unlock()
		return
	}
	c.life = settled
	goodbye, how := c.goodbye, c.ending()
	c.mu.Unlock()
	waits()
	s.Report(how)
	s.Closed(goodbye)
}

// kill ends a connection that takes nothing any more, what the system has
// queued for it included.
func (c *conn) kill() {
	c.giveUp()
	socket := c.socket
	if t, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = t.NetConn() // no goodbye of TLS, which would wait for room as well
	}
	if s, ok := socket.(interface{ SetLinger(sec int) error }); ok {
		s.SetLinger(0) // an error means that it is closed already
	}
	socket.Close()
}

// shutLocked begins the closing: nothing is queued from now on. mu is held.
func (c *conn) shutLocked() {
	if c.life != opened {
		return
	}
	c.life = closing
	if c.verbs.calls != nil {
		c.verbs.calls.stop()
	}
	c.linger = time.AfterFunc(c.door.cfg.Linger, c.kill)
	c.out.roomy()
}

// stopTimers runs last: no timer is set on a closing connection. mu is held.
func (c *conn) stopTimers() {
	c.out.retry.Stop()
	if c.linger != nil {
		c.linger.Stop()
	}
}
