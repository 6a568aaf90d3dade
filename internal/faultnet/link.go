package faultnet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// ErrCut is the error of a connection that was cut or closed, and of one that can't come to be.
var ErrCut = fmt.Errorf("faultnet: the connection is cut: %w", net.ErrClosed)

// Link is any number of connections that share a fate. Its methods may be called at the same time.
type Link struct {
	carriers sync.WaitGroup

	mu         sync.Mutex                                  // guards the fields below, and those of conns that say so
	changed    sync.Cond                                   // on mu
	refuse     bool                                        // no connection comes to be
	holdReads  bool                                        // readers wait
	holdWrites bool                                        // writers wait
	late       bool                                        // what is written does not arrive yet; writers do not wait
	dial       func(ctx context.Context) (net.Conn, error) // nil: the system does
	conns      map[*Conn]struct{}
	opened     uint64
	cuts       uint64 // connections that were cut
}

// New returns a link that is well.
func New() *Link {
	l := &Link{conns: map[*Conn]struct{}{}}
	l.changed.L = &l.mu
	return l
}

// Dial opens a connection, as the dialer of a NATS client does.
func (l *Link) Dial(network, addr string) (net.Conn, error) {
	return l.DialContext(context.Background(), network, addr)
}

// DialContext opens a connection as [net.Dialer.DialContext] does.
func (l *Link) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.refuses() {
		return nil, ErrCut
	}
	c, err := l.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	on, err := l.add(c)
	if err != nil {
		return nil, err
	}
	return on, nil
}

func (l *Link) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.dial != nil {
		return l.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

func (l *Link) refuses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse || l.dial != nil && (l.late || l.holdReads || l.holdWrites)
}

// add puts a connection on the link, or closes it when none may be there.
func (l *Link) add(c net.Conn) (*Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse {
		c.Close()
		return nil, ErrCut
	}
	l.opened++
	on := &Conn{Conn: c, link: l, number: l.opened, greeting: l.dial != nil}
	l.conns[on] = struct{}{}
	return on, nil
}

// Listen returns a listener whose connections are on the link.
func (l *Link) Listen(from net.Listener) net.Listener { return listener{from, l} }

type listener struct {
	net.Listener
	link *Link
}

// Accept returns the next connection; one that comes while the link refuses them is closed. The system would take
// megabytes for a peer that reads nothing: here it takes little, so that not much need be sent to see what happens
// then.
func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(32 << 10) // it may be gone already
		}
		if on, err := l.link.add(c); err == nil {
			return on, nil
		}
	}
}

// change sets fields of the link, and has the one who waits look again.
func (l *Link) change(set func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set()
	l.changed.Broadcast()
}

// HoldReads makes readers wait, or lets them go on: what comes stays with the system.
func (l *Link) HoldReads(hold bool) { l.change(func() { l.holdReads = hold }) }

// HoldWrites makes writers wait, or lets them go on.
func (l *Link) HoldWrites(hold bool) { l.change(func() { l.holdWrites = hold }) }

// Delay keeps what is written on its way, or lets it arrive: also that of connections that were closed or stranded.
func (l *Link) Delay(late bool) {
	l.change(func() {
		l.late = late
		for c := range l.conns {
			c.stuck = c.stuck && late
		}
	})
}

// Stick makes the one who reads the present connections wait until they are cut; later ones are well.
func (l *Link) Stick() {
	l.change(func() {
		for c := range l.conns {
			c.unread = true
		}
	})
}

// UnderWay returns how many bytes are written and kept from arriving.
func (l *Link) UnderWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for c := range l.conns {
		n += len(c.b)
	}
	return n
}

// Opened returns how many connections have come to be.
func (l *Link) Opened() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// Cuts returns how many connections were cut.
func (l *Link) Cuts() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// Refuse lets no connection come to be, or lets them again; those that there are stay as they are.
func (l *Link) Refuse(refuse bool) { l.change(func() { l.refuse = refuse }) }

// Mend lets connections come to be and everything pass again, what was held back first.
func (l *Link) Mend() { l.change(l.mend) }

func (l *Link) mend() {
	l.refuse, l.holdReads, l.holdWrites, l.late = false, false, false, false
	for c := range l.conns {
		c.stuck = false
	}
}

// Cut closes every connection without a word, losing what was on its way, and lets none come to be until Mend, Reset or
// Refuse(false).
func (l *Link) Cut() { l.cut(true, false) }

// Reset closes every connection without a word, losing what was on its way. New ones are well.
func (l *Link) Reset() { l.cut(false, false) }

func (l *Link) cut(refuse, abrupt bool) {
	l.mu.Lock()
	l.mend()
	l.refuse = refuse
	conns := l.inTurn()
	l.conns = map[*Conn]struct{}{}
	for _, c := range conns {
		c.closed, c.lost = true, true
	}
	l.cuts += uint64(len(conns))
	l.changed.Broadcast()
	l.mu.Unlock()
	for _, c := range conns {
		c.end(abrupt)
	}
}

// inTurn returns the connections in the order in which they came to be: the order of a map of pointers is the
// machine's, and what happens in a simulation must not depend on it. mu is held.
func (l *Link) inTurn() []*Conn {
	return slices.SortedFunc(maps.Keys(l.conns), func(a, b *Conn) int { return cmp.Compare(a.number, b.number) })
}

// CutOne cuts any one connection without a word: half of the time by a reset, so that what is on its way is lost.
func (l *Link) CutOne() {
	l.mu.Lock()
	var victim *Conn
	for c := range l.conns { // in no order
		victim = c
		if rand.IntN(len(l.conns)) == 0 {
			break
		}
	}
	if victim == nil {
		l.mu.Unlock()
		return
	}
	delete(l.conns, victim)
	victim.closed, victim.lost = true, true
	l.cuts++
	l.changed.Broadcast()
	l.mu.Unlock()
	victim.end(rand.IntN(2) == 0)
}

// Strand has every connection end for the one who reads and writes it, while what was written stays on its way until
// Delay(false) or Mend. What later connections write is not held up.
func (l *Link) Strand() {
	l.change(func() {
		l.holdReads, l.holdWrites, l.late = false, false, false
		for _, c := range l.inTurn() {
			c.stuck = true
			c.closeLate()
		}
	})
}

// Close cuts what there is, permanently, and waits for it.
func (l *Link) Close() {
	l.Cut()
	l.carriers.Wait()
}
