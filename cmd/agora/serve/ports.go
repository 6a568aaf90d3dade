package serve

import (
	"log/slog"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/edge"
)

// places are the addresses of an edge's ports.
type places struct {
	public, admin string
	grpc, p2p     string // empty for no such port
}

// ports are those of an edge.
type ports struct {
	public, admin *port
	grpc          *grpcPort // nil where there is none
	p2p           string    // where its door is to listen; empty for no such port
}

// open opens the ports, but for one of operators that is open already. The caller owes a call of close whether or not
// it fails.
func (p *ports) open(at places, s *config.Settings, proxies *edge.Proxies, log *slog.Logger, fail func(error)) (err error) {
	p.p2p = at.p2p
	public := publicPort(&s.Server)
	public.shared = proxies.Trust
	if s.Server.ProxyProtocol {
		public.proxies = proxies
	}
	if p.public, err = openPort(at.public, public, log, fail); err != nil {
		return err
	}
	if at.grpc != "" {
		if p.grpc, err = openGRPC(at.grpc, public, log); err != nil {
			return err
		}
	}
	if p.admin != nil {
		return nil
	}
	p.admin, err = openPort(at.admin, adminPort(&s.Server), log, fail)
	return err
}

// places returns where the ports are, to be opened there again.
func (p *ports) places() places {
	at := places{public: p.public.listener.Addr().String(), admin: p.admin.listener.Addr().String(), p2p: p.p2p}
	if p.grpc != nil {
		at.grpc = p.grpc.Addr().String()
	}
	return at
}

// limit has the limits of the edge count for connections that nobody was let in over yet.
func (p *ports) limit(n *edge.Node) {
	strangers := n.Shedder().Strangers()
	p.public.listener.Limit(n.ConnLimiter(), strangers)
	p.admin.listener.Limit(nil, strangers)
	if p.grpc != nil {
		p.grpc.Limit(n.ConnLimiter(), strangers)
	}
}

// close ends those ports that there are, but for what operators ask.
func (p *ports) close() {
	if p.public != nil {
		p.public.close()
	}
	if p.grpc != nil {
		p.grpc.close()
	}
}
