package serve

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/aip"
)

// callConn is a connection of a grpcPort.
type callConn struct {
	*aip.QuietConn
	pending *admission.PendingConn
	port    *grpcPort
	addr    callAddr

	strangers atomic.Int64 // calls whose callers are not known, and whose messages are not whole

	mu     sync.Mutex // guards the fields below
	calls  int        // that were let in and are under way
	closed bool
}

func newCallConn(p *grpcPort, c *admission.PendingConn) *callConn {
	own := &callConn{QuietConn: aip.NewQuietConn(c.NetConn(), c), pending: c, port: p}
	own.addr = callAddr{conn: own}
	return own
}

// callAddr is where a callConn comes from: the one thing of a connection by which a call's context knows it. That of a
// connection behind a proxy is known once the proxy has said it: the one who asks before waits for that.
type callAddr struct{ conn *callConn }

// Network implements net.Addr.
func (a *callAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (a *callAddr) String() string { return a.conn.Conn.RemoteAddr().String() }

// AddrPort returns the address; the zero one where it is none of TCP.
func (a *callAddr) AddrPort() netip.AddrPort {
	if at, is := a.conn.Conn.RemoteAddr().(*net.TCPAddr); is {
		return at.AddrPort()
	}
	return netip.AddrPort{}
}

// Arrived says that a call has arrived over the connection whose caller is not known yet.
func (a *callAddr) Arrived() { a.conn.strangers.Add(1) }

// Settled says that its caller is known, or its message whole. Where there is no such call any more nothing is kept of
// what strangers sent over the connection.
func (a *callAddr) Settled() {
	if a.conn.strangers.Add(-1) == 0 {
		a.conn.pending.Settle()
	}
}

// RemoteAddr implements net.Conn.
func (c *callConn) RemoteAddr() net.Addr { return &c.addr }

// Pending returns the connection among those of its port that were not admitted.
func (c *callConn) Pending() *admission.PendingConn { return c.pending }

// begin notes that a call was let in; false where the connection is closed.
func (c *callConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls == 1 && !c.closed {
		c.pending.Admitted()
		c.port.idle.remove(c)
	}
	return !c.closed
}

// end notes that a call has ended.
func (c *callConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 && !c.closed {
		c.port.idle.add(c)
	}
}

// Close implements net.Conn.
func (c *callConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.port.idle.remove(c)
	c.mu.Unlock()
	return c.pending.Close()
}

// defaultIdle is how many connections of gRPC may be idle before the edge's limits are known.
const defaultIdle = 4096

// idleConns are the connections over which somebody was let in and no call is under way.
type idleConns struct {
	mu   sync.Mutex // guards the fields below
	most int
	list list.List // of *callConn, the one that has been idle longest in front
	at   map[*callConn]*list.Element
}

// keep bounds how many there may be.
func (i *idleConns) keep(most int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.most = max(1, most)
}

// add notes that a connection is idle. Beyond the bound the one that has been idle longest is closed; its server does
// the rest.
func (i *idleConns) add(c *callConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.list.Len() >= i.most {
		longest := i.list.Front()
		i.removeLocked(longest.Value.(*callConn))
		longest.Value.(*callConn).pending.Close()
	}
	i.at[c] = i.list.PushBack(c)
}

// remove notes that a connection is idle no more.
func (i *idleConns) remove(c *callConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removeLocked(c)
}

func (i *idleConns) removeLocked(c *callConn) {
	if e := i.at[c]; e != nil {
		i.list.Remove(e)
		delete(i.at, c)
	}
}

// size returns how many there are.
func (i *idleConns) size() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.list.Len()
}
