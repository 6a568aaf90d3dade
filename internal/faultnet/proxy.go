package faultnet

import (
	"net"
	"sync"
)

// TB is what a [Proxy] needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Proxy is a TCP line from one process to another. Its methods may be called at the same time.
type Proxy struct {
	target   string
	listener net.Listener
	there    *Link // connections to the target
	back     *Link // connections from clients
	work     sync.WaitGroup
}

// NewProxy opens a line to a host and port, which need not be there yet. The test's end closes it.
func NewProxy(t TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("open a line to %s: %v", target, err)
	}
	p := &Proxy{target: target, listener: l, there: New(), back: New()}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host and port at which the line begins.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets every connection, and those that come, until Mend or Reset.
func (p *Proxy) Cut() {
	p.back.cut(true, true)
	p.there.cut(true, true)
}

// Reset resets every connection; new ones are well.
func (p *Proxy) Reset() {
	p.Cut()
	p.Mend()
}

// Silence lets nothing pass until Mend, Cut or Reset: as with a peer whose network has gone, neither side is told.
func (p *Proxy) Silence() {
	p.Delay()
	p.Deafen()
}

// Delay keeps what is said on its way until Mend: it arrives though its speaker has gone meanwhile. Cut and Reset lose
// it.
func (p *Proxy) Delay() { p.there.Delay(true) }

// Deafen lets what is said pass, but no answer, until Mend, Cut or Reset.
func (p *Proxy) Deafen() { p.back.Delay(true) }

// Strand has every client lose its connection while what it wrote stays on its way until Mend. New connections are
// well.
func (p *Proxy) Strand() {
	p.there.change(func() {
		p.there.late = false
		for c := range p.there.conns {
			c.stuck = true
		}
	})
	p.back.change(func() {
		for c := range p.back.conns {
			c.endWrites()
		}
	})
}

// Stick has the present connections take nothing more from their clients, as those of a server that is stopped.
func (p *Proxy) Stick() { p.back.Stick() }

// UnderWay returns how many bytes are said and kept from arriving.
func (p *Proxy) UnderWay() int { return p.there.UnderWay() }

// Mend lets connections come to be and bytes pass again, those held back first.
func (p *Proxy) Mend() {
	p.there.Mend()
	p.back.Mend()
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.there.Close()
	p.back.Close()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.back.refuses() {
			(&Conn{Conn: c}).end(true)
		} else if near, err := p.back.add(c); err == nil {
			p.work.Go(func() { p.serve(near) })
		}
	}
}

// serve carries one connection until both sides have ended.
func (p *Proxy) serve(near *Conn) {
	defer near.Close()
	if !p.there.arrives() {
		return
	}
	c, err := p.there.Dial("tcp", p.target)
	if err != nil {
		near.end(true)
		return
	}
	far := c.(*Conn)
	defer far.Close()
	var answers sync.WaitGroup
	answers.Go(func() { carry(near, far) })
	carry(far, near)
	answers.Wait()
}

// arrives waits while the link is late; false when it refuses connections.
func (l *Link) arrives() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.late && !l.refuse {
		l.changed.Wait()
	}
	return !l.refuse
}

// carry copies one way until there is no more, and says so. Anyone who speaks is heard though the other side has gone.
func carry(to, from *Conn) {
	b := make([]byte, 32<<10)
	taken := true
	for {
		n, err := from.Read(b)
		if n > 0 && taken {
			_, failed := to.Write(b[:n])
			taken = failed == nil
		}
		if err != nil {
			break
		}
	}
	_ = to.CloseWrite() // it may be gone
}
