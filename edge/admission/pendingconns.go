package admission

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/turns"
)

const (
	pendingPlaces   = 4096        // connections of a port that are not admitted yet
	pendingPatience = time.Second // that each of them has at least, however many come

	// pendingTurn is for how long a connection that has said nothing yet counts among the few that are at work: a
	// client on the same machine has asked by then, and those that are far away, or mean to say nothing, keep nobody
	// out.
	pendingTurn = 2 * time.Millisecond

	// silentTurns is how many newcomers more than those that asked take turns one behind the other. Beyond that most
	// say nothing, which costs nothing: then nobody waits for a turn behind them.
	silentTurns = 512
)

// PendingConnsConfig sets up PendingConns. The zero value is ready to use.
type PendingConnsConfig struct {
	Places   int           // connections that may be pending at a time; 4096
	Patience time.Duration // for which a connection may be pending at least, however many come; 1 s
	Turns    *turns.Turns  // in which newcomers are let in, each until it has asked; nil where nobody waits for one
	Shared   SharedAddress // addresses that may have all places; none if nil
}

// PendingConns is a listener that bounds the connections that were not admitted yet: those in their handshake, those
// whose header still comes, those over which nobody was let in, and those between two requests or without one. When all
// places are taken, the one that has been pending longest is closed, and the newcomer gets its place; where even that
// one came just now, the newcomer waits for a moment. An address that has more than a quarter of the places gives way
// first.
//
// What a pending connection has sent counts among the bytes of strangers, see [PendingConns.Limit].
type PendingConns struct {
	net.Listener // nil where connections are entered by Enter alone
	cfg          PendingConnsConfig
	limits       atomic.Pointer[pendingLimits]
	closed       chan struct{}
	closing      sync.Once
	freed        chan struct{} // holds a token once a place was given back
	evicted      atomic.Int64

	mu        sync.Mutex                // guards the fields below, and those of each PendingConn that say so
	silent    int                       // newcomers that have not asked yet, beside those that have
	waiting   list.List                 // of *PendingConn, the oldest first
	addresses map[netip.Addr]*list.List // of *PendingConn, by address, the oldest first
}

// pendingLimits is what PendingConns knows of the edge's limits.
type pendingLimits struct {
	connections *ConnLimiter
	strangers   *Strangers
}

// NewPendingConns returns a listener that has the connections of another one pending. l may be nil: then Accept is not
// to be called.
func NewPendingConns(l net.Listener, cfg PendingConnsConfig) *PendingConns {
	cfg.Places = cmp.Or(cfg.Places, pendingPlaces)
	cfg.Patience = cmp.Or(cfg.Patience, pendingPatience)
	if cfg.Shared == nil {
		cfg.Shared = func(netip.Addr) bool { return false }
	}
	return &PendingConns{
		Listener: l, cfg: cfg, closed: make(chan struct{}), freed: make(chan struct{}, 1), addresses: map[netip.Addr]*list.List{},
	}
}

// Limit has the limits of an edge count from now on: of the connections of an address that are pending beyond
// limits.connections-per-ip, the oldest gives way to a newcomer once it has had its patience; those that come a second
// are bounded by four times limits.handshakes-per-ip, and what pending connections have sent counts among the bytes of
// strangers. c and s may be nil.
func (p *PendingConns) Limit(c *ConnLimiter, s *Strangers) { p.limits.Store(&pendingLimits{c, s}) }

// Resize has other bounds count from now on. It is for tests.
func (p *PendingConns) Resize(places int, patience time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Places, p.cfg.Patience = places, patience
}

// PendingConn is a connection of PendingConns. It is pending until Admitted or Close.
type PendingConn struct {
	net.Conn
	of      *PendingConns
	pending atomic.Bool // it has a place
	bytes   *Stranger   // what it has sent while it is pending; nil where that is not counted
	from    netip.Addr  // by which it is counted
	shared  bool        // many clients come from there

	since   time.Time     // guarded by of.mu, like the fields below
	place   *list.Element // in waiting; nil where it has none
	own     *list.Element // in the list of its address; nil where it has no place
	endTurn func()        // may be called again
	asked   bool          // for something, since it came
}

// Accept returns the next connection once there is a place for it. It is a *PendingConn.
func (p *PendingConns) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		own, err := p.Enter(context.Background(), c)
		if err == nil {
			return own, nil
		}
		c.Close()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
	}
}

// Enter has a connection be pending, once there is a place for it. The error is RATE_LIMITED where its address opens
// too many a second, net.ErrClosed after Close, or that of ctx: then the connection is still the caller's.
func (p *PendingConns) Enter(ctx context.Context, c net.Conn) (*PendingConn, error) {
	from, l := remoteAddr(c), p.limits.Load()
	g := &PendingConn{Conn: c, of: p, from: countedAddress(from), shared: p.cfg.Shared(from), endTurn: noTurn}
	if l != nil && l.connections != nil && !g.shared {
		if err := l.connections.arrive(g.from); err != nil {
			return nil, err
		}
	}
	if l != nil && l.strangers != nil {
		g.bytes = l.strangers.enterConn(g.evict)
	}
	if p.takesTurn() {
		g.endTurn = p.cfg.Turns.TakeFor(pendingTurn)
	}
	if err := p.await(ctx, g); err != nil {
		g.endTurn()
		return nil, err
	}
	return g, nil
}

func noTurn() {}

// takesTurn reports whether a newcomer waits for its turn.
func (p *PendingConns) takesTurn() bool {
	if p.cfg.Turns == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent >= silentTurns {
		return false
	}
	p.silent++
	return true
}

// askedLocked notes that a connection has asked for something: the turn is another one's. mu is held.
func (p *PendingConns) askedLocked(g *PendingConn) {
	g.endTurn()
	if !g.asked {
		g.asked = true
		p.silent = max(p.silent-2, 0) // for itself, and for another one
	}
}

// await returns once a connection has a place.
func (p *PendingConns) await(ctx context.Context, g *PendingConn) error {
	for {
		left := p.enter(g)
		if left <= 0 {
			return nil
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-p.freed:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-p.closed:
			t.Stop()
			return net.ErrClosed
		}
		t.Stop()
	}
}

// Close ends the listener. Connections that it has accepted go on.
func (p *PendingConns) Close() error {
	p.closing.Do(func() { close(p.closed) })
	if p.Listener == nil {
		return nil
	}
	return p.Listener.Close()
}

// enter gives a connection a place. Where there is none yet, it returns when there may be one.
func (p *PendingConns) enter(g *PendingConn) (left time.Duration) {
	p.mu.Lock()
	out, left := p.inTheWay(g)
	if left > 0 {
		p.mu.Unlock()
		return left
	}
	if out != nil {
		p.removeLocked(out)
	}
	p.putLocked(g)
	p.mu.Unlock()
	if out != nil {
		out.evict(errCrowded)
	}
	return 0
}

// inTheWay returns the connection whose place a newcomer gets, or for how long it has to wait for one; nil where a
// place is free. mu is held.
func (p *PendingConns) inTheWay(g *PendingConn) (*PendingConn, time.Duration) {
	own := p.addresses[g.from]
	if own != nil && !g.shared {
		oldest := own.Front().Value.(*PendingConn) // it goes, but has its time before: others of its address are honest
		if l := p.limits.Load(); l != nil && l.connections != nil && l.connections.tooMany(own.Len()) && time.Since(oldest.since) >= p.cfg.Patience {
			return oldest, 0
		}
	}
	if p.waiting.Len() < p.cfg.Places {
		return nil, 0
	}
	oldest := p.waiting.Front().Value.(*PendingConn)
	left := p.leftLocked(oldest)
	if left > 0 && own != nil {
		if mine := own.Front().Value.(*PendingConn); p.leftLocked(mine) < left {
			oldest, left = mine, p.leftLocked(mine)
		}
	}
	return oldest, max(left, 0)
}

// leftLocked returns for how long a connection may be pending yet, however many come. One whose address has more than
// its part of the places has a quarter of the patience. mu is held.
func (p *PendingConns) leftLocked(g *PendingConn) time.Duration {
	patience := p.cfg.Patience
	if p.addresses[g.from].Len() > max(p.cfg.Places/addressPart, 1) && !g.shared {
		patience /= addressPart
	}
	return patience - time.Since(g.since)
}

// putLocked gives a connection the place behind all others. mu is held.
func (p *PendingConns) putLocked(g *PendingConn) {
	if p.addresses[g.from] == nil {
		p.addresses[g.from] = list.New()
	}
	g.since, g.place, g.own = time.Now(), p.waiting.PushBack(g), p.addresses[g.from].PushBack(g)
	g.pending.Store(true)
}

// removeLocked takes a connection's place. mu is held.
func (p *PendingConns) removeLocked(g *PendingConn) {
	g.endTurn()
	if g.place == nil {
		return
	}
	p.waiting.Remove(g.place)
	own := p.addresses[g.from]
	if own.Remove(g.own); own.Len() == 0 {
		delete(p.addresses, g.from)
	}
	g.place, g.own = nil, nil
	g.pending.Store(false)
}

// leave takes a connection's place, so that another one may have it.
func (p *PendingConns) leave(g *PendingConn) {
	p.mu.Lock()
	had := g.place != nil
	p.removeLocked(g)
	p.mu.Unlock()
	if !had {
		return
	}
	g.Settle()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// Pending returns how many connections are pending.
func (p *PendingConns) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len()
}

// Evicted returns how many pending connections were closed so far, because others needed their place or their bytes.
func (p *PendingConns) Evicted() int64 { return p.evicted.Load() }

// ConnState follows what becomes of a connection of an HTTP server: it is its ConnState. A connection that was admitted
// is pending again between two requests.
func (p *PendingConns) ConnState(c net.Conn, s http.ConnState) {
	g := PendingConnOf(c)
	if g == nil {
		return
	}
	switch s {
	case http.StateActive: // it has asked: others have their turn
		p.mu.Lock()
		p.askedLocked(g)
		p.mu.Unlock()
		g.Settle()
	case http.StateIdle:
		g.Again()
	case http.StateHijacked, http.StateClosed:
		p.leave(g)
	}
}

// PendingConnOf returns the connection of PendingConns over which another one speaks, as that of TLS does; nil for
// none.
func PendingConnOf(c net.Conn) *PendingConn {
	for range 8 {
		switch t := c.(type) {
		case *PendingConn:
			return t
		case *tls.Conn:
			c = t.NetConn()
		case interface{ Pending() *PendingConn }:
			return t.Pending()
		default:
			return nil
		}
	}
	return nil
}

// Admitted says that somebody was let in over the connection: it has a place among the pending ones no more.
func (g *PendingConn) Admitted() {
	g.of.mu.Lock()
	g.of.askedLocked(g)
	g.of.mu.Unlock()
	g.of.leave(g)
}

// Again says that the connection has nothing under way: it is pending from now on, behind all others. Where all places
// are taken the one that has been pending longest is closed at once.
func (g *PendingConn) Again() {
	p := g.of
	p.mu.Lock()
	p.removeLocked(g)
	var out *PendingConn
	if p.waiting.Len() >= p.cfg.Places {
		out = p.waiting.Front().Value.(*PendingConn)
		p.removeLocked(out)
	}
	p.putLocked(g)
	p.mu.Unlock()
	g.Settle()
	if out != nil {
		out.evict(errCrowded)
	}
}

// Read implements net.Conn.
func (g *PendingConn) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.Count(n)
	return n, err
}

// Count counts bytes that have come over the connection, and that its server may keep. Anyone who reads the connection
// below it calls it.
func (g *PendingConn) Count(n int) {
	if n > 0 && g.bytes != nil && g.pending.Load() {
		g.bytes.Hold(n) // which closes it when it is too much
	}
}

// Settle gives the counted bytes back: nothing is kept any more of what has come over the connection until now, or it
// counts elsewhere.
func (g *PendingConn) Settle() {
	if g.bytes != nil {
		g.bytes.Hold(-int(g.bytes.held.Load()))
	}
}

// evict closes the connection, as others need its place, or the bytes that it holds.
func (g *PendingConn) evict(error) {
	g.of.evicted.Add(1)
	g.Close()
}

// Close implements net.Conn. Nothing of the connection is counted any more.
func (g *PendingConn) Close() error {
	err := g.Conn.Close()
	g.of.leave(g)
	if g.bytes != nil {
		g.bytes.Leave()
	}
	return err
}

// NetConn returns the connection below.
func (g *PendingConn) NetConn() net.Conn { return g.Conn }

// SetLinger says what becomes of what is not sent when the connection is closed.
func (g *PendingConn) SetLinger(sec int) error {
	if c, ok := g.Conn.(interface{ SetLinger(sec int) error }); ok {
		return c.SetLinger(sec)
	}
	return nil
}

// CloseWrite ends what is sent.
func (g *PendingConn) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// peerAddress is for connections whose RemoteAddr waits until the peer has said something: PeerAddr returns the address
// of the socket.
type peerAddress interface{ PeerAddr() net.Addr }

// remoteAddr returns where a connection comes from; an invalid address where that can't be read.
func remoteAddr(c net.Conn) netip.Addr {
	from := c.RemoteAddr
	if p, ok := c.(peerAddress); ok {
		from = p.PeerAddr
	}
	switch at := from().(type) {
	case *net.TCPAddr:
		return at.AddrPort().Addr()
	case interface{ AddrPort() netip.AddrPort }:
		return at.AddrPort().Addr()
	case nil:
		return netip.Addr{}
	default:
		a, _ := netip.ParseAddrPort(at.String())
		return a.Addr()
	}
}
