package agoratest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP line from one process to another that can be cut, go silent, and be
// mended. Its methods may be called at the same time.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	moved sync.Cond  // on mu
	state lineState
	conns map[net.Conn]struct{} // both ends of each
}

// lineState is what a line does with connections and bytes.
type lineState int

const (
	lineUp     lineState = iota
	lineCut              // every connection is reset, the present ones and those to come
	lineSilent           // connections are taken and kept, but nothing passes, not even their ends
	lineDeaf             // what is said arrives, but no answer does
	lineClosed
)

// NewProxy opens a line to a host and port, which need not be there yet. The test's end closes it.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("open a line to %s: %v", target, err)
	}
	p := &Proxy{target: target, listener: l, conns: map[net.Conn]struct{}{}}
	p.moved.L = &p.mu
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host and port at which the line begins.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets every connection, and those that come, until Mend.
func (p *Proxy) Cut() { p.set(lineCut) }

// Silence lets nothing pass until Mend or Cut: as with a peer whose network has gone, neither side is told.
func (p *Proxy) Silence() { p.set(lineSilent) }

// Deafen lets what is said pass, but no answer, until Mend or Cut.
func (p *Proxy) Deafen() { p.set(lineDeaf) }

// Mend lets connections come to be and bytes pass again, those held back first.
func (p *Proxy) Mend() { p.set(lineUp) }

func (p *Proxy) set(s lineState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == lineClosed {
		return
	}
	p.state = s
	if s == lineCut || s == lineClosed {
		for c := range p.conns {
			reset(c)
		}
	}
	p.moved.Broadcast()
}

// reset closes a connection so that its peer knows at once, whatever is still on its way.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the close that follows says all
	}
	_ = c.Close()
}

func (p *Proxy) close() {
	p.set(lineClosed)
	_ = p.listener.Close()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.enter(c) {
			p.work.Go(func() { p.serve(c) })
		}
	}
}

// enter notes a connection, or resets it where none may be.
func (p *Proxy) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == lineCut || p.state == lineClosed {
		reset(c)
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) leave(c net.Conn) {
	reset(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve carries one connection until both sides have ended.
func (p *Proxy) serve(from net.Conn) {
	defer p.leave(from)
	if !p.pass(false) {
		return
	}
	to, err := net.Dial("tcp", p.target)
	if err != nil || !p.enter(to) {
		return
	}
	defer p.leave(to)
	var back sync.WaitGroup
	back.Go(func() { p.carry(from, to, true) })
	p.carry(to, from, false)
	back.Wait()
}

// carry copies one way until there is no more, and says so. What is held back is read all the
// same, up to a bound, and handed on though its speaker has ended: the last words of who is killed meanwhile are not lost.
func (p *Proxy) carry(to, from net.Conn, answers bool) {
	said := make(chan []byte, 4096)
	var reader sync.WaitGroup
	reader.Go(func() { hear(from, said) })
	taken := true
	for b := range said {
		if taken = taken && p.pass(answers); taken {
			_, err := to.Write(b)
			taken = err == nil // else nobody hears it any more, and the other way goes on
		}
	}
	reader.Wait()
	if tcp, ok := to.(*net.TCPConn); ok && p.pass(answers) {
		_ = tcp.CloseWrite() // it may be gone
	}
}

// hear reads until the end, and closes said then.
func hear(from net.Conn, said chan<- []byte) {
	defer close(said)
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			said <- b[:n]
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the line is silent; false when it was cut.
func (p *Proxy) pass(answers bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.state == lineSilent || answers && p.state == lineDeaf {
		p.moved.Wait()
	}
	return p.state == lineUp || p.state == lineDeaf
}
