package agoratest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// errCut is what a line that was cut answers.
var errCut = errors.New("agoratest: the line is cut")

// line is every connection of one edge: to the log, to presence, and from its
// agents. Cutting it is what the rest of the cluster sees of an edge that dies.
type line struct {
	mu    sync.Mutex // guards the fields below
	moved sync.Cond  // on mu
	gone  bool
	was   bool // gone at some time
	held  bool // nothing is written to the log
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
	line  *line
	toLog bool
}

// Write waits while the line to the log is held.
func (c *cable) Write(p []byte) (int, error) {
	if c.toLog {
		c.line.pass()
	}
	return c.Conn.Write(p)
}

func (l *line) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held && !l.gone {
		l.moved.Wait()
	}
}

// hold stops what is written to the log, or lets it go on.
func (l *line) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.moved.Broadcast()
}

// Close closes the connection and takes it off the line.
func (c *cable) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// add puts a connection on the line, or closes it when that is cut.
func (l *line) add(c net.Conn, toLog bool) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		c.Close()
		return nil, errCut
	}
	on := &cable{c, l, toLog}
	l.conns[on] = struct{}{}
	return on, nil
}

// Dial makes the line the dialer of a NATS connection.
func (l *line) Dial(network, addr string) (net.Conn, error) {
	return l.connect(context.Background(), network, addr, true)
}

// dial is the dialer of a presence client.
func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return l.connect(ctx, network, addr, false)
}

func (l *line) connect(ctx context.Context, network, addr string, toLog bool) (net.Conn, error) {
	if l.isCut() {
		return nil, errCut
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return l.add(c, toLog)
}

func (l *line) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

func (l *line) wasCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.was
}

// cut closes every connection without a word, and lets none come to be.
func (l *line) cut() {
	l.mu.Lock()
	l.gone, l.was = true, true
	conns := l.conns
	l.conns = map[*cable]struct{}{}
	l.moved.Broadcast()
	l.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
}

// mend lets connections come to be again.
func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = false
}

// door is a listener whose connections are on the line.
type door struct {
	net.Listener
	line *line
}

// Accept returns the next connection; one that comes while the line is cut is closed.
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c, err := d.line.add(c, false); err == nil {
			return c, nil
		}
	}
}
