package serve

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/turns"
)

const (
	hallSize     = 4096            // connections of a port that have asked for nothing yet
	hallPatience = 2 * time.Second // that each of them has at least, however many come

	// hallTurn is for how long one that has said nothing yet counts among the few that are at work: a client on the same machine has
	// asked by then, and those that are far away, or mean to say nothing, keep nobody out.
	hallTurn = 2 * time.Millisecond
)

// hall is where connections wait that have not been let in: those
// in their handshake, those whose header still comes, those that ask for what nobody is let in for, and those between two
// requests, or without one. When it is full, who has been there longest is shown out; where even
// that one has come just now, nobody is let in for a moment.
type hall struct {
	net.Listener
	size     int
	patience time.Duration
	closed   chan struct{}
	closing  sync.Once
	freed    chan struct{} // holds a token once somebody has left
	turns    *turns.Turns  // in which they are let in, each until it has asked; nil where nobody waits for one

	mu      sync.Mutex // guards the fields below
	waiting list.List  // of *visitor, the oldest first
	at      map[net.Conn]*list.Element
}

type visitor struct {
	conn  net.Conn
	since time.Time
	leave func() // ends its turn; may be called again
}

func stay() {} // for who has no turn

func newHall(l net.Listener) *hall {
	return &hall{
		Listener: l, size: hallSize, patience: hallPatience,
		closed: make(chan struct{}), freed: make(chan struct{}, 1), at: map[net.Conn]*list.Element{},
	}
}

// Accept lets the next connection in, once there is room for it.
func (h *hall) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	leave := stay
	if h.turns != nil {
		leave = h.turns.TakeFor(hallTurn)
	}
	for {
		left := h.enter(c, leave)
		if left <= 0 {
			return c, nil
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-h.freed:
		case <-h.closed:
			t.Stop()
			leave()
			c.Close()
			return nil, net.ErrClosed
		}
		t.Stop()
	}
}

// Close ends the listener.
func (h *hall) Close() error {
	h.closing.Do(func() { close(h.closed) })
	return h.Listener.Close()
}

// enter takes a connection in; where there is no room yet, it returns when there may be some.
func (h *hall) enter(c net.Conn, leave func()) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if oldest := h.waiting.Front(); h.waiting.Len() >= h.size {
		v := oldest.Value.(*visitor)
		if left := h.patience - time.Since(v.since); left > 0 {
			return left
		}
		h.showOut(oldest)
	}
	h.at[c] = h.waiting.PushBack(&visitor{c, time.Now(), leave})
	return 0
}

// showOut closes a connection that has waited. mu is held.
func (h *hall) showOut(e *list.Element) {
	c := e.Value.(*visitor).conn
	h.remove(e, c)
	c.Close()
}

// remove takes a connection off the list. mu is held.
func (h *hall) remove(e *list.Element, c net.Conn) {
	h.waiting.Remove(e)
	delete(h.at, c)
	e.Value.(*visitor).leave()
}

// see follows what becomes of a connection: it is the server's ConnState.
func (h *hall) see(c net.Conn, s http.ConnState) {
	c = socketOf(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.at[c]
	switch s {
	case http.StateActive: // it has asked: others have their turn
		if e != nil {
			v := e.Value.(*visitor)
			v.leave()
			v.leave = stay
		}
	case http.StateIdle:
		if e != nil {
			e.Value.(*visitor).since = time.Now()
			h.waiting.MoveToBack(e)
			return
		}
		if h.waiting.Len() >= h.size {
			h.showOut(h.waiting.Front())
		}
		h.at[c] = h.waiting.PushBack(&visitor{c, time.Now(), stay})
	case http.StateHijacked, http.StateClosed:
		h.free(e, c)
	}
}

// leave takes a connection off those that wait, as it was let in.
func (h *hall) leave(c net.Conn) {
	c = socketOf(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free(h.at[c], c)
}

// free has a place, where it was taken, be somebody else's. mu is held.
func (h *hall) free(e *list.Element, c net.Conn) {
	if e == nil {
		return
	}
	h.remove(e, c)
	select {
	case h.freed <- struct{}{}:
	default:
	}
}

// socketOf returns the connection that TLS is spoken over.
func socketOf(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}
