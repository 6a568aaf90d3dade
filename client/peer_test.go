package client

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the other end of clients: it takes connections, and the test says what it answers.
type peer struct {
	t     *testing.T
	url   string
	greet http.Header // of its answers to handshakes
	pongs bool        // those that come are frames of type pong
	conns chan *peerConn
}

// peerConn is a connection that the test reads and writes frame by frame.
type peerConn struct {
	t      *testing.T
	conn   *websocket.Conn
	header http.Header
	frames chan wire.Frame // every frame that came; closed at the end
	end    error           // why it ended; set before frames is closed
}

func newPeer(t *testing.T) *peer { return peerAt(t, nil) }

// peerAt returns a peer that listens there; nil is a port of this machine.
func peerAt(t *testing.T, l net.Listener) *peer {
	p := &peer{t: t, conns: make(chan *peerConn, 8)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" || r.Header.Get("Authorization") == "Bearer wrong" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		u := websocket.Upgrader{}
		conn, err := u.Upgrade(w, r, p.greet)
		if err != nil {
			return
		}
		pc := &peerConn{t: t, conn: conn, header: r.Header, frames: make(chan wire.Frame, 4096)}
		if p.pongs {
			conn.SetPongHandler(func(string) error {
				pc.frames <- wire.Frame{Type: "pong"}
				return nil
			})
		}
		p.conns <- pc
		pc.read()
	}))
	if l != nil {
		server.Listener.Close()
		server.Listener = l
	}
	server.Start()
	t.Cleanup(server.Close)
	p.url = "ws" + strings.TrimPrefix(server.URL, "http")
	return p
}

// pipes are a listener that only its own dial knows: connections in memory, for a time that is not the machine's.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	close func()
}

func newPipes() *pipes {
	over := make(chan struct{})
	return &pipes{make(chan net.Conn), over, sync.OnceFunc(func() { close(over) })}
}

// dial is Config.Dial.
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *peerConn) read() {
	defer p.conn.Close()
	defer close(p.frames)
	for {
		_, b, err := p.conn.ReadMessage()
		if err != nil {
			p.end = err
			return
		}
		var f wire.Frame
		if err := wire.DecodeRequest(b, &f, wire.Limits{}); err != nil {
			p.t.Errorf("client sent %s: %v", b, err)
			continue
		}
		p.frames <- f
	}
}

// accept returns the next connection.
func (p *peer) accept() *peerConn {
	p.t.Helper()
	return await.Recv(p.t, "a connection", p.conns)
}

// next returns the next frame but for acknowledgements and heartbeats.
func (p *peerConn) next() wire.Frame {
	p.t.Helper()
	for {
		f := p.any()
		if f.Type != "ack" && f.Type != "agent.heartbeat" {
			return f
		}
	}
}

// any returns the next frame.
func (p *peerConn) any() wire.Frame {
	p.t.Helper()
	select {
	case f, ok := <-p.frames:
		if !ok {
			p.t.Fatalf("connection ended: %v", p.end)
		}
		return f
	case <-time.After(await.Long):
		p.t.Fatal("no frame came")
		return wire.Frame{}
	}
}

// expect returns the next frame, which must be of that type.
func (p *peerConn) expect(typ string) wire.Frame {
	p.t.Helper()
	f := p.next()
	if f.Type != typ {
		p.t.Fatalf("client sent %s, want %s", f.Append(nil), typ)
	}
	return f
}

// acked waits until a position is acknowledged.
func (p *peerConn) acked(space string, seq uint64) {
	p.t.Helper()
	for {
		f := p.any()
		if f.Type == "ack" && f.Space == space && f.Seq >= seq {
			if f.Seq > seq {
				p.t.Fatalf("acknowledged %d, want %d", f.Seq, seq)
			}
			return
		}
	}
}

func (p *peerConn) send(f wire.Frame) {
	p.t.Helper()
	p.raw(string(f.Append(nil)))
}

func (p *peerConn) raw(frame string) {
	p.t.Helper()
	if err := p.try(frame); err != nil {
		p.t.Errorf("write: %v", err)
	}
}

// try writes a frame to a client that may have gone.
func (p *peerConn) try(frame string) error {
	return p.conn.WriteMessage(websocket.TextMessage, []byte(frame))
}

// cut breaks the connection without a word.
func (p *peerConn) cut() { p.conn.NetConn().Close() }

// closed waits for the client to end the connection, and returns how.
func (p *peerConn) closed() error {
	p.t.Helper()
	deadline := time.After(await.Long)
	for {
		select {
		case _, ok := <-p.frames:
			if !ok {
				return p.end
			}
		case <-deadline:
			p.t.Fatal("the client does not end the connection")
		}
	}
}

// register answers a registration.
func (p *peerConn) register(resumed bool) wire.Frame {
	p.t.Helper()
	f := p.expect("agent.register")
	p.send(wire.Frame{
		Type: "agent.registered", ID: f.ID, Agent: &wire.Agent{ID: f.Agent.ID, ConnectionID: "ws-1"},
		ResumeToken: "token-1", HasLastSeq: true, LastSeq: f.LastSeq, HeartbeatInterval: 30, Continued: wire.Continued{Resumed: resumed},
	})
	return f
}

// stored gives the cumulative receipt of a frame.
func (p *peerConn) stored(f wire.Frame) {
	p.t.Helper()
	p.send(wire.Frame{Type: "receipt", To: f.To, N: f.N, Status: "stored"})
}

// dial connects a client to the peer; both are closed at the end of the test.
func dial(t *testing.T, p *peer, cfg Config) (*Client, *peerConn) {
	t.Helper()
	cfg.URLs = []string{p.url}
	if cfg.Agent == "" {
		cfg.Agent = "me"
	}
	cfg.Patience, cfg.Stall = cmp.Or(cfg.Patience, time.Hour), cmp.Or(cfg.Stall, time.Hour)
	cfg.Backoff = Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	result := async(func() (*Client, error) { return Dial(await.Context(t), cfg) })
	conn := p.accept()
	conn.register(false)
	c := result(t)
	t.Cleanup(func() { c.Close() })
	return c, conn
}

// async runs f beside the test; the function that it returns waits for its result.
func async[T any](f func() (T, error)) func(*testing.T) T {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	return func(t *testing.T) T {
		t.Helper()
		r := await.Recv(t, "it returns", done)
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.v
	}
}

// errOf runs f beside the test; the function that it returns waits for its error.
func errOf(f func() error) func(*testing.T) error {
	get := async(func() (error, error) { return f(), nil })
	return func(t *testing.T) error { t.Helper(); return get(t) }
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// memory is a State that forgets with the test. The client calls it one at a time.
type memory struct{ p Positions }

func (m *memory) Load(context.Context) (Positions, error) { return m.p, nil }

func (m *memory) Save(_ context.Context, p Positions) error {
	m.p = p
	return nil
}
