package p2phost

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora/internal/origin"
)

// ports are those at which a host listens. The library's transports dial, and listen at these: its own listeners take
// no more than 64 connections that have said nothing yet, count nobody by where they come from, and ask no web page
// whose it is.
type ports struct {
	open      func(address string) (net.Listener, error)
	pages     origin.Policy
	resources network.ResourceManager
	upgrader  transport.Upgrader

	mu  sync.Mutex // guards the field below
	all map[string]*port
}

// add opens a port at an address of TCP, and returns where it listens by itself and as WebSocket.
func (p *ports) add(at ma.Multiaddr) ([]ma.Multiaddr, error) {
	_, address, err := manet.DialArgs(at)
	if err != nil {
		return nil, err
	}
	l, err := p.open(address)
	if err != nil {
		return nil, err
	}
	one, err := newPort(l, p.resources, p.pages)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*port{}
	}
	p.all[one.plain.at.String()] = one
	return []ma.Multiaddr{one.plain.at, one.ws.at}, nil
}

// listen has the library accept connections of a port that is open.
func (p *ports) listen(t transport.Transport, at ma.Multiaddr) (transport.Listener, error) {
	tcp, ws := ma.SplitFunc(at, func(c ma.Component) bool { return c.Protocol().Code == ma.P_WS })
	p.mu.Lock()
	one := p.all[tcp.String()]
	p.mu.Unlock()
	switch {
	case one == nil:
		return nil, fmt.Errorf("no port is open at %s", at)
	case len(ws) > 0:
		return p.upgrader.UpgradeGatedMaListener(t, one.ws), nil
	}
	return p.upgrader.UpgradeGatedMaListener(t, one.plain), nil
}

// close closes the ports, where the library does not.
func (p *ports) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		err = errors.Join(err, one.plain.Close(), one.ws.Close())
	}
	return err
}

// plainTransport is TCP.
type plainTransport struct {
	*tcp.TcpTransport
	ports *ports
}

// Listen implements transport.Transport.
func (t *plainTransport) Listen(at ma.Multiaddr) (transport.Listener, error) {
	return t.ports.listen(t, at)
}

// webTransport is WebSocket.
type webTransport struct {
	*websocket.WebsocketTransport
	ports *ports
}

// Listen implements transport.Transport.
func (t *webTransport) Listen(at ma.Multiaddr) (transport.Listener, error) {
	return t.ports.listen(t, at)
}

// newTransports returns the transports of a host.
func newTransports(p *ports) (*plainTransport, *webTransport, error) {
	plain, err := tcp.NewTCPTransport(p.upgrader, p.resources, nil, tcp.DisableReuseport(), tcp.WithConnectionTimeout(dialTimeout))
	ws, wrong := websocket.New(p.upgrader, p.resources, nil)
	return &plainTransport{plain, p}, &webTransport{ws, p}, errors.Join(err, wrong)
}
