package agoratest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// errCut is what a line that was cut answers.
var errCut = errors.New("agoratest: the line is cut")

// end is what an edge's connection leads to.
type end int

// The ends.
const (
	toAgents end = iota
	toLog
	toPresence
	ends // how many there are
)

// line is every connection of one edge: to the log, to presence, and from its
// agents. Cutting it is what the rest of the cluster sees of an edge that dies.
type line struct {
	mu    sync.Mutex // guards the fields below
	moved sync.Cond  // on mu
	gone  [ends]bool // no connection comes to be
	held  [ends]bool // nothing is written
	still bool       // nothing is read nor written, anywhere
	was   bool       // cut at some time
	conns map[*cable]struct{}
}

func newLine() *line {
	l := &line{conns: map[*cable]struct{}{}}
	l.moved.L = &l.mu
	return l
}

// cable is one connection of a line.
type cable struct {
	net.Conn
	line *line
	to   end
	over bool // guarded by line.mu
}

// NetConn returns the connection itself.
func (c *cable) NetConn() net.Conn { return c.Conn }

// Read waits while the line is frozen.
func (c *cable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.line.thaw(c)
	return n, err
}

func (l *line) thaw(c *cable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.still && !l.gone[c.to] && !c.over {
		l.moved.Wait()
	}
}

// freeze stops all that is read and written, or lets it go on.
func (l *line) freeze(still bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.still = still
	l.moved.Broadcast()
}

// Write waits while the line to its end is held.
func (c *cable) Write(p []byte) (int, error) {
	c.line.pass(c)
	return c.Conn.Write(p)
}

func (l *line) pass(c *cable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.held[c.to] || l.still) && !l.gone[c.to] && !c.over {
		l.moved.Wait()
	}
}

// hold stops what is written to an end, or lets it go on.
func (l *line) hold(to end, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[to] = held
	l.moved.Broadcast()
}

// Close closes the connection and takes it off the line.
func (c *cable) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.over = true
	c.line.moved.Broadcast()
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// add puts a connection on the line, or closes it when that is cut.
func (l *line) add(c net.Conn, to end) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone[to] {
		c.Close()
		return nil, errCut
	}
	on := &cable{Conn: c, line: l, to: to}
	l.conns[on] = struct{}{}
	return on, nil
}

// Dial makes the line the dialer of a NATS connection.
func (l *line) Dial(network, addr string) (net.Conn, error) {
	return l.connect(context.Background(), network, addr, toLog)
}

// dial is the dialer of a presence client.
func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return l.connect(ctx, network, addr, toPresence)
}

// dialAgent is how the edge connects to agents.
func (l *line) dialAgent(ctx context.Context, network, addr string) (net.Conn, error) {
	return l.connect(ctx, network, addr, toAgents)
}

func (l *line) connect(ctx context.Context, network, addr string, to end) (net.Conn, error) {
	if l.isCut(to) {
		return nil, errCut
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return l.add(c, to)
}

func (l *line) isCut(to end) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone[to]
}

func (l *line) wasCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.was
}

// every is all ends, for cut and mend.
var every = []end{toAgents, toLog, toPresence}

// cut closes every connection to some ends without a word, and lets none come to be.
func (l *line) cut(to ...end) {
	l.mu.Lock()
	l.was = true
	var conns []*cable
	for _, e := range to {
		l.gone[e] = true
	}
	for c := range l.conns {
		if l.gone[c.to] {
			delete(l.conns, c)
			conns = append(conns, c)
		}
	}
	l.moved.Broadcast()
	l.mu.Unlock()
	for _, c := range conns {
		c.Conn.Close()
	}
}

// mend lets connections to some ends come to be again.
func (l *line) mend(to ...end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range to {
		l.gone[e] = false
	}
}

// door is a listener whose connections are on the line.
type door struct {
	net.Listener
	line *line
}

// Accept returns the next connection; one that comes while the line is cut is closed. The system would take megabytes for a
// peer that reads nothing: here it takes little, so that not much need be sent to see what the edge does then.
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(32 << 10) // it may be gone already
		}
		if c, err := d.line.add(c, toAgents); err == nil {
			return c, nil
		}
	}
}
