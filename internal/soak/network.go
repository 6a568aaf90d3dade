package soak

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// network opens the sockets of a run's clients, and cuts them.
type network struct {
	dialer net.Dialer
	opened atomic.Uint64
	cuts   atomic.Uint64

	mu    sync.Mutex // guards conns
	conns map[*socket]struct{}
}

// socket is one connection, which the network knows until it is closed.
type socket struct {
	net.Conn
	net *network
}

func newNetwork() *network { return &network{conns: map[*socket]struct{}{}} }

// dial is client.Config.Dial.
func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := n.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s := &socket{c, n}
	n.opened.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[s] = struct{}{}
	return s, nil
}

// Close closes the connection.
func (s *socket) Close() error {
	s.net.mu.Lock()
	delete(s.net.conns, s)
	s.net.mu.Unlock()
	return s.Conn.Close()
}

// cut breaks any one connection without a word: half of the time by a reset,
// so that what is under way is lost.
func (n *network) cut() {
	n.mu.Lock()
	var victim *socket
	for s := range n.conns { // in no order
		victim = s
		if rand.IntN(len(n.conns)) == 0 {
			break
		}
	}
	n.mu.Unlock()
	if victim == nil {
		return
	}
	if t, ok := victim.Conn.(*net.TCPConn); ok && rand.IntN(2) == 0 {
		_ = t.SetLinger(0) // a socket that is closed already needs no reset
	}
	n.cuts.Add(1)
	victim.Close()
}

// storm cuts connections, so many a second, until ctx ends.
func (n *network) storm(ctx context.Context, rate float64) {
	for p := newPacer(rate); p.wait(ctx); {
		n.cut()
	}
}

// pacer spaces out what is done so many times a second. One goroutine owns it.
type pacer struct {
	every time.Duration
	next  time.Time
}

func newPacer(rate float64) *pacer {
	every := time.Duration(float64(time.Second) / rate)
	return &pacer{every: every, next: time.Now().Add(rand.N(every + 1))}
}

// wait waits for the next time; it returns false when ctx ends. What was
// missed is made up for at once, but no more than a second's worth.
func (p *pacer) wait(ctx context.Context) bool {
	now := time.Now()
	if late := now.Add(-time.Second); p.next.Before(late) {
		p.next = late
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(p.every)
	return pause.For(ctx, d)
}
