package presence

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// conn is a client's connection to an embedded server that is served by the one who writes to it: an answer is there
// when Write returns, and nobody runs for it. It is for commands that are answered at once, so for none that subscribes
// or waits for others.
type conn struct {
	of   *Server
	srv  *server.Server
	peer *server.Peer
	in   []byte // written, and not a whole command yet; guarded by serving

	serving sync.Mutex
	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // on mu
	out     bytes.Buffer
	closed  bool // by the client
	gone    bool // the server is, or has hung up
	limit   time.Time
}

func newConn(of *Server, srv *server.Server) *conn {
	c := &conn{of: of, srv: srv}
	c.changed.L = &c.mu
	c.peer = server.NewPeer(bufio.NewWriter(answers{c}))
	return c
}

// answers takes what the server answers.
type answers struct{ *conn }

func (a answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
	return a.out.Write(p)
}

// Write has the server answer what makes a whole command.
func (c *conn) Write(p []byte) (int, error) {
	c.serving.Lock()
	defer c.serving.Unlock()
	if err := c.over(); err != nil {
		return 0, err
	}
	c.in = append(c.in, p...)
	rest := c.in
	for {
		args, n, err := command(rest)
		if err != nil {
			c.hangUp()
			break
		}
		if n == 0 {
			break
		}
		rest = rest[n:]
		if len(args) > 0 {
			c.srv.Dispatch(c.peer, args)
		}
		if c.peer.Closed() {
			c.peer.Flush()
			c.hangUp()
			break
		}
	}
	c.peer.Flush()
	c.in = append(c.in[:0], rest...)
	return len(p), nil
}

func (c *conn) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case c.gone:
		return io.ErrClosedPipe
	}
	return nil
}

// Read reads what the server has answered, and waits where that is nothing.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.Len() == 0 && !c.limit.IsZero() {
		defer time.AfterFunc(time.Until(c.limit), c.changed.Broadcast).Stop()
	}
	for !c.closed && !c.gone && c.out.Len() == 0 {
		if !c.limit.IsZero() && !time.Now().Before(c.limit) {
			return 0, os.ErrDeadlineExceeded
		}
		c.changed.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	return c.out.Read(p) // io.EOF where nothing comes any more
}

// Close closes the connection.
func (c *conn) Close() error {
	c.end(&c.closed)
	c.of.forget(c)
	return nil
}

// hangUp ends the connection for the server. What it has answered can be read.
func (c *conn) hangUp() { c.end(&c.gone) }

func (c *conn) end(how *bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*how = true
	c.changed.Broadcast()
}

// SetReadDeadline sets the deadline of reading.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = t
	c.changed.Broadcast()
	return nil
}

// SetWriteDeadline does nothing: nobody waits for a server to take something.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reading.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// LocalAddr returns an address that is nowhere.
func (c *conn) LocalAddr() net.Addr { return nowhere{} }

// RemoteAddr returns an address that is nowhere.
func (c *conn) RemoteAddr() net.Addr { return nowhere{} }

type nowhere struct{}

func (nowhere) Network() string { return "process" }
func (nowhere) String() string  { return "process" }

var errNoCommand = errors.New("this is no command")

// command takes the first command off b, a list of strings; n is how many bytes it has, 0 while it is not there as a
// whole.
func command(b []byte) (args []string, n int, err error) {
	count, at, err := size(b, 0, '*')
	if err != nil || at == 0 {
		return nil, 0, err
	}
	args = make([]string, 0, min(max(count, 0), 1<<10))
	for range count {
		length, from, err := size(b, at, '$')
		if err != nil || from == 0 || len(b) < from+length+2 {
			return nil, 0, err
		}
		args = append(args, string(b[from:from+length]))
		at = from + length + 2
	}
	return args, at, nil
}

// size reads a line of b that says how much follows it, and returns where that begins; 0 while the line is not there as
// a whole.
func size(b []byte, at int, mark byte) (n, from int, err error) {
	end := bytes.IndexByte(b[at:], '\n')
	if end < 0 {
		return 0, 0, nil
	}
	line := b[at : at+end+1]
	if len(line) < 4 || line[0] != mark {
		return 0, 0, errNoCommand
	}
	if n, err = strconv.Atoi(string(line[1 : len(line)-2])); err != nil || n < 0 {
		return 0, 0, errNoCommand
	}
	return n, at + end + 1, nil
}
