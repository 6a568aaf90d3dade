package ws

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"time"
)

// gorilla answers a peer that breaks the protocol by itself, writing straight
// to the connection, where its close frame could land inside one of ours.
// Therefore it never sees the socket: it sees tap, which lets it read, and
// queues what it writes with everything else.
type tap struct {
	net.Conn
	c *conn
}

// Read notes life: bytes of a frame that is still coming count too.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.c.alive()
	}
	return n, err
}

// Write writes the handshake's answer, and queues the close frame that gorilla writes later.
func (t *tap) Write(p []byte) (int, error) {
	if !t.c.upgraded {
		return t.Conn.Write(p)
	}
	t.c.condemn(p)
	return len(p), nil
}

// SetWriteDeadline does nothing after the handshake: the writer sets its own.
func (t *tap) SetWriteDeadline(d time.Time) error {
	if !t.c.upgraded {
		return t.Conn.SetWriteDeadline(d)
	}
	return nil
}

// hijacker gives gorilla the tap in place of the socket.
type hijacker struct {
	http.ResponseWriter
	c *conn
}

// Hijack takes the connection over from the HTTP server.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w, ok := h.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("connection can't be taken over")
	}
	socket, rw, err := w.Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.c.socket = socket
	return &tap{socket, h.c}, rw, nil
}
