package serve

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/web"
)

// openP2P makes the libp2p door, which opens its port.
func (e *edgeServer) openP2P(p plan, kit *web.Kit, c *carrier.Carriers) error {
	cfg, err := p.P2PDoor(e.ports.p2p, p.peers, e.log)
	if err != nil {
		return err
	}
	cfg.Carriers, cfg.Ready, cfg.Version = c, e.ready, version.String()
	if p.Server.ProxyProtocol {
		cfg.Open = e.listenBehindProxies
	}
	if e.doors.p2p, err = p2p.New(e.node, cfg); err != nil {
		return err
	}
	e.doors.all = append(e.doors.all, p2pDoor{e.doors.p2p, kit})
	return nil
}

// listenBehindProxies opens a port for peers, who may come by way of proxies.
func (e *edgeServer) listenBehindProxies(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return peerListener(l, &e.proxies), nil
}

// peerAddress is where peers of libp2p reach the edge; empty where they don't.
func (d *doors) peerAddress() string {
	if d.p2p == nil {
		return ""
	}
	for _, at := range d.p2p.Addresses() {
		if !strings.Contains(at, "/ws/") {
			return at
		}
	}
	return ""
}

// p2pDoor is the door for peers of libp2p, at a port of its own. Its paths are at the public port.
type p2pDoor struct {
	*p2p.Door
	kit *web.Kit
}

func (d p2pDoor) name() string                   { return "p2p" }
func (d p2pDoor) mount(mux *http.ServeMux)       { d.Mount(d.kit, mux) }
func (d p2pDoor) metrics(r *prometheus.Registry) { registerP2P(r, d.Stats()) }
func (d p2pDoor) drain(ctx context.Context)      { d.Drain(ctx) }
func (d p2pDoor) close()                         { d.Close() }
func (d p2pDoor) wait()                          { d.Wait() }
