package p2phost

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/early"
	"github.com/agora-relay/agora/internal/origin"
)

// webSide is the side of a port that speaks HTTP, to nobody but those who ask for a WebSocket.
type webSide struct {
	port   *port
	pages  origin.Policy
	server *http.Server
	conns  chan net.Conn // unbuffered
	upper  websocket.Upgrader
}

const (
	headerTime = 10 * time.Second
	headerSize = 4 << 10 // Go adds as much
)

func newWebSide(p *port, pages origin.Policy) *webSide {
	w := &webSide{port: p, pages: pages, conns: make(chan net.Conn)}
	w.upper = websocket.Upgrader{HandshakeTimeout: headerTime, CheckOrigin: func(*http.Request) bool { return true }} // pages has been asked
	w.server = &http.Server{
		Handler: w, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: headerTime, MaxHeaderBytes: headerSize,
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, acceptedKey{}, c) },
	}
	w.server.SetKeepAlivesEnabled(false)
	return w
}

type acceptedKey struct{}

// serve answers requests until the server is closed.
func (w *webSide) serve() { _ = w.server.Serve(w) } // it ends with the port

// take has a connection be served.
func (w *webSide) take(a *accepted) {
	select {
	case w.conns <- a:
	case <-w.port.ctx.Done():
		_ = a.Close()
	}
}

// Accept implements net.Listener.
func (w *webSide) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.port.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The port closes what it listens at.
func (w *webSide) Close() error { return nil }

// Addr implements net.Listener.
func (w *webSide) Addr() net.Addr { return w.port.Addr() }

// ServeHTTP implements http.Handler: before any byte of libp2p, pages that may not are refused.
func (w *webSide) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if err := w.pages.Check(r); err != nil {
		e := agora.AsError(err)
		http.Error(to, e.Message, e.Code.Status().HTTP)
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		http.Error(to, "libp2p is spoken here, by TCP and by WebSocket", http.StatusNotFound)
		return
	}
	a, is := r.Context().Value(acceptedKey{}).(*accepted)
	c, err := w.upper.Upgrade(early.Handshake{ResponseWriter: to}, r, nil)
	if err != nil || !is { // it has been answered
		return
	}
	w.port.ws.take(a, &webConn{Conn: c})
}

// webConn is a WebSocket as a connection: what its messages are cut into does not matter.
type webConn struct {
	*websocket.Conn
	reader  io.Reader // of the message that comes; one goroutine reads
	closing sync.Once

	mu sync.Mutex // guards writing
}

// Read implements net.Conn.
func (c *webConn) Read(b []byte) (int, error) {
	for {
		if c.reader == nil {
			var err error
			if _, c.reader, err = c.NextReader(); err != nil {
				if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseNoStatusReceived) {
					err = io.EOF
				}
				return 0, err
			}
		}
		n, err := c.reader.Read(b)
		if err == io.EOF {
			c.reader, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *webConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.WriteMessage(websocket.BinaryMessage, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// goodbye is how long a peer is given to take the last frame.
const goodbye = 100 * time.Millisecond

// Close implements net.Conn. Idempotent.
func (c *webConn) Close() (err error) {
	c.closing.Do(func() {
		last := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = c.WriteControl(websocket.CloseMessage, last, time.Now().Add(goodbye)) // a peer that is gone hears nothing
		err = c.Conn.Close()
	})
	return err
}

// SetDeadline implements net.Conn.
func (c *webConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *webConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}
