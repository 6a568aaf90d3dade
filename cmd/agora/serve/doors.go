package serve

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/wire"
)

// door is one way into an edge. Its methods are called in this order, and close and wait also where drain was not.
type door interface {
	name() string                 // in the log
	mount(*http.ServeMux)         // adds its paths to the public port; one with a port of its own opens that
	metrics(*prometheus.Registry) // registers what it counts
	drain(context.Context)        // empties it, but for sessions, which the node asks to reconnect; returns when ctx is over at the latest
	close()                       // lets nobody in any more, and ends what is left
	wait()                        // returns when nothing of it runs
}

// openDoors makes the doors of a started edge.
func (e *edgeServer) openDoors(p plan) error {
	dc, wc := p.WS(e.log), p.Web(e.log)
	dc.Loopback, wc.Origins.Loopback = p.loopback, p.loopback
	wc.Admitted, wc.BodyTime, wc.Write = e.public.admitted, readBody, writeTime
	dc.Carriers = carrier.New(e.tools)
	e.ws = ws.New(e.node, dc)
	kit := web.New(e.node, wc)
	e.doors = []door{wsDoor{e.ws}, httpDoor{kit, dc.Carriers, dc.Limits}}
	if p.IAT.On {
		ic := p.IATDoor(e.log)
		ic.Approvals, ic.Tools = e.approvals, e.tools
		e.iat = iat.New(e.node, kit, ic)
		e.doors = append(e.doors, iatDoor{e.iat})
	}
	if e.grpc != nil {
		if err := e.openAIP(p, dc.Carriers); err != nil {
			return err
		}
	}
	if e.p2pAddr == "" {
		return nil
	}
	return e.openP2P(p, e.p2pAddr, kit, dc.Carriers)
}

// wsDoor is the door for WebSockets. The node asks its sessions to reconnect when the edge drains.
type wsDoor struct{ *ws.Door }

func (d wsDoor) name() string                   { return "ws" }
func (d wsDoor) mount(mux *http.ServeMux)       { mux.Handle("/ws", d.Door) }
func (d wsDoor) metrics(r *prometheus.Registry) { registerDoor(r, d.Stats()) }
func (d wsDoor) drain(context.Context)          {}
func (d wsDoor) close()                         { d.Close() }
func (d wsDoor) wait()                          { d.Wait() }

// httpDoor is the door for requests over HTTP, and what all doors over HTTP are made with.
type httpDoor struct {
	kit      *web.Kit
	carriers *carrier.Carriers
	limits   wire.Limits // that frames of /ws are decoded by
}

func (d httpDoor) name() string { return "http" }

func (d httpDoor) mount(mux *http.ServeMux) {
	rest.Mount(d.kit, mux, d.carriers)
	rest.MountProtocol(d.kit, mux, d.limits)
	mux.HandleFunc("/", d.kit.NotFound)
}

func (d httpDoor) metrics(r *prometheus.Registry) { registerHTTP(r, d.kit.Stats()) }
func (d httpDoor) drain(ctx context.Context)      { d.kit.Drain(ctx) }
func (d httpDoor) close()                         { d.kit.Close() }
func (d httpDoor) wait()                          { d.kit.Wait() }
