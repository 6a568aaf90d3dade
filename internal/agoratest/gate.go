package agoratest

import (
	"net"
	"sync"
)

// gate is a socket whose reading can be stopped: what has come stays with the system, as with a client that is stuck.
type gate struct {
	net.Conn

	mu     sync.Mutex // guards the fields below
	moved  sync.Cond  // on mu
	shut   bool
	closed bool
}

func newGate(c net.Conn) *gate {
	g := &gate{Conn: c}
	g.moved.L = &g.mu
	return g
}

// Read hands nothing on while the gate is shut.
func (g *gate) Read(p []byte) (int, error) {
	g.pass()
	n, err := g.Conn.Read(p)
	g.pass()
	return n, err
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut && !g.closed {
		g.moved.Wait()
	}
}

// set shuts the gate or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.moved.Broadcast()
}

// Close closes the socket, and lets go of whoever waits at the gate.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.moved.Broadcast()
	g.mu.Unlock()
	return g.Conn.Close()
}
