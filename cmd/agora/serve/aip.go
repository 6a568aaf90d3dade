package serve

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/carrier"
)

// openAIP makes the AIP door.
func (e *edgeServer) openAIP(p plan, c *carrier.Carriers) error {
	cfg := p.AIPDoor(e.log)
	cfg.Carriers, cfg.Ready, cfg.Admitted = c, e.ready, e.ports.grpc.admitted
	if e.ports.grpc.certs != nil {
		cfg.TLS = e.ports.grpc.certs.Config(false)
	}
	nodes, err := p.AIP.NodeTLS.Open()
	if err != nil {
		return fmt.Errorf("aip.node-tls: %w", err)
	}
	if nodes != nil {
		cfg.NodeTLS = nodes.Now
		e.ports.grpc.follow(nodes, e.log)
	}
	connections, _ := e.node.Shedder().Limits()
	e.ports.grpc.keep(connections)
	e.doors.aip = aip.New(e.node, cfg)
	e.doors.all = append(e.doors.all, aipDoor{e.doors.aip, e.ports.grpc, e.fail})
	return nil
}

// aipDoor is the door for agents and toolboxes of the AIP dialect, at a port of its own.
type aipDoor struct {
	*aip.Door
	port *grpcPort
	fail func(error)
}

func (d aipDoor) name() string                   { return "aip" }
func (d aipDoor) mount(*http.ServeMux)           { d.port.serve(d.Serve, d.fail) }
func (d aipDoor) metrics(r *prometheus.Registry) { registerAIP(r, d.Stats()); registerLinks(r, d.Door) }
func (d aipDoor) drain(ctx context.Context)      { d.Drain(ctx) }
func (d aipDoor) close()                         { d.Close() }
func (d aipDoor) wait()                          { d.Wait() }
