package p2phost

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora/internal/origin"
)

// port is an address of TCP at which libp2p is spoken, by itself and as WebSocket: the first bytes of a connection tell
// which.
type port struct {
	net.Listener
	at        ma.Multiaddr
	resources network.ResourceManager
	plain, ws *half
	web       *webSide
	ctx       context.Context // ends with the port
	stop      context.CancelFunc
	work      sync.WaitGroup

	mu   sync.Mutex // guards the field below
	open int        // halves that are not closed
}

// half is one of the two ways in which a port is spoken to, as the library accepts connections.
type half struct {
	port  *port
	at    ma.Multiaddr
	conns chan *raw // unbuffered
	ctx   context.Context
	stop  context.CancelFunc
}

// newPort serves a listener, until both halves are closed.
func newPort(l net.Listener, resources network.ResourceManager, pages origin.Policy) (*port, error) {
	at, err := manet.FromNetAddr(l.Addr())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	p := &port{Listener: l, at: at, resources: resources, open: 2}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.plain, p.ws = p.half(at), p.half(at.Encapsulate(webSocket))
	p.web = newWebSide(p, pages)
	p.work.Go(p.web.serve)
	p.work.Go(p.accept)
	return p, nil
}

var webSocket = ma.StringCast("/ws")

func (p *port) half(at ma.Multiaddr) *half {
	h := &half{port: p, at: at, conns: make(chan *raw)}
	h.ctx, h.stop = context.WithCancel(p.ctx)
	return h
}

// accept takes connections until the port is closed.
func (p *port) accept() {
	for pause := time.Duration(0); ; {
		c, err := p.Listener.Accept()
		switch {
		case err == nil:
			pause = 0
			p.work.Go(func() { p.begin(newAccepted(c)) })
			continue
		case errors.Is(err, net.ErrClosed) || p.ctx.Err() != nil:
			return
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second) // as with HTTP: there may be files again
		select {
		case <-time.After(pause):
		case <-p.ctx.Done():
			return
		}
	}
}

// begin hands a connection on to who speaks as it does.
func (p *port) begin(a *accepted) {
	stop := context.AfterFunc(p.ctx, func() { _ = a.Close() }) // it is over, else
	defer stop()
	head := make([]byte, prefix)
	_ = a.SetReadDeadline(time.Now().Add(prefixTime)) // what is over fails to be read
	if _, err := io.ReadFull(a.Conn, head); err != nil {
		_ = a.Close()
		return
	}
	_ = a.SetReadDeadline(time.Time{})
	a.head = head
	switch {
	case string(head) == multistreamPrefix:
		if c, is := a.Conn.(interface{ SetLinger(int) error }); is {
			_ = c.SetLinger(0) // as the library has it: who closes first has no port to wait for
		}
		p.plain.take(a, a)
	case speaksHTTP(head):
		p.web.take(a)
	default:
		_ = a.Close()
	}
}

const (
	prefix            = 3
	prefixTime        = 10 * time.Second
	multistreamPrefix = "\x13/m"
)

// speaksHTTP reports whether a request of HTTP/1 may begin so.
func speaksHTTP(head []byte) bool {
	for _, c := range head {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// take hands a connection over which c is to be spoken to the library.
func (h *half) take(a *accepted, c net.Conn) {
	var err error
	if a.local, err = h.port.multiaddr(c.LocalAddr(), h); err == nil {
		a.remote, err = h.port.multiaddr(c.RemoteAddr(), h)
	}
	if err == nil {
		a.scope, err = h.port.resources.OpenConnection(network.DirInbound, true, a.remote)
	}
	if err != nil {
		_ = c.Close()
		return
	}
	select {
	case h.conns <- &raw{c, a}:
	case <-h.ctx.Done():
		a.scope.Done()
		_ = c.Close()
	}
}

// multiaddr returns an address of TCP as that of a half.
func (p *port) multiaddr(at net.Addr, h *half) (ma.Multiaddr, error) {
	m, err := manet.FromNetAddr(at)
	if err == nil && h == p.ws {
		m = m.Encapsulate(webSocket)
	}
	return m, err
}

// Accept implements transport.GatedMaListener.
func (h *half) Accept() (manet.Conn, network.ConnManagementScope, error) {
	select {
	case c := <-h.conns:
		return c, c.of.scope, nil
	case <-h.ctx.Done():
		return nil, nil, transport.ErrListenerClosed
	}
}

// Addr implements transport.GatedMaListener.
func (h *half) Addr() net.Addr { return h.port.Addr() }

// Multiaddr implements transport.GatedMaListener.
func (h *half) Multiaddr() ma.Multiaddr { return h.at }

// Close implements transport.GatedMaListener. Idempotent.
func (h *half) Close() error {
	if h.ctx.Err() != nil {
		return nil
	}
	h.stop()
	h.port.mu.Lock()
	h.port.open--
	last := h.port.open == 0
	h.port.mu.Unlock()
	if !last {
		return nil
	}
	return h.port.close()
}

// close ends the port, and returns when nothing of it runs.
func (p *port) close() error {
	p.stop()
	err := errors.Join(p.Listener.Close(), p.web.server.Close())
	p.work.Wait()
	return err
}
