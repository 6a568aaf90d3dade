// Package early takes connections over from an HTTP server together with what their peers have sent before the
// handshake was answered: a client may write its first frames right behind its request.
package early

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

// Handshake is an answer to a handshake whose connection may be taken over. Gorilla's Upgrader refuses one whose peer
// has sent more than its request; of this one it sees nothing but the request, and the connection that it takes over
// begins with the rest.
type Handshake struct{ http.ResponseWriter }

// Hijack implements [http.Hijacker]. Where there is nothing early, the connection is the server's own.
func (h Handshake) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w, ok := h.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("connection can't be taken over")
	}
	c, rw, err := w.Hijack()
	if err != nil || rw.Reader.Buffered() == 0 {
		return c, rw, err
	}
	sent, _ := rw.Reader.Peek(rw.Reader.Buffered()) // it is buffered
	all := &conn{Conn: c, sent: append([]byte(nil), sent...)}
	rw.Reader.Reset(all)
	return all, rw, nil
}

// conn is a connection that begins with what was sent early. One goroutine at a time reads.
type conn struct {
	net.Conn
	sent []byte // and not read
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.sent) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.sent)
	if c.sent = c.sent[n:]; len(c.sent) == 0 {
		c.sent = nil
	}
	return n, nil
}

// NetConn returns the connection below, and that of TLS below it.
func (c *conn) NetConn() net.Conn {
	if t, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c.Conn
}
