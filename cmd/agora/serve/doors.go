package serve

import (
	"context"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/p2p"
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

// doors are those of an edge.
type doors struct {
	all []door
	ws  *ws.Door  // one of them
	iat *iat.Door // another one; nil where it is off
	aip *aip.Door // and one more; nil where it is off
	p2p *p2p.Door // and the last; nil where it is off
}

// each does something with every door that there is, all at once.
func (d *doors) each(do func(door)) {
	var all sync.WaitGroup
	for _, one := range d.all {
		all.Go(func() { do(one) })
	}
	all.Wait()
}

// traffic returns how many connections of agents there are, and how many frames have come and gone so far.
func (d *doors) traffic() (connections, frames int64) {
	s := d.ws.Stats()
	connections, frames = s.Connections.Load(), s.FramesIn.Load()+s.FramesOut.Load()
	if d.iat != nil {
		s := d.iat.Stats()
		connections, frames = connections+s.Downlinks.Load(), frames+s.Moved.Load()
	}
	if d.aip != nil { // whose messages are not counted: each has about a KiB
		s := d.aip.Stats()
		connections, frames = connections+s.Nodes.Load(), frames+(s.In.Load()+s.Out.Load())>>10
	}
	return connections, frames
}

// openDoors makes the doors of a started edge.
func (e *edgeServer) openDoors(p plan) error {
	dc, wc := p.WS(e.log), p.Web(e.log)
	wc.Admitted, wc.BodyTime, wc.Write = e.ports.public.admitted, readBody, writeTime
	dc.Carriers = carrier.New(e.tools)
	e.node.Screens(dc.Carriers.Screen)
	e.doors.ws = ws.New(e.node, dc)
	kit := web.New(e.node, wc)
	e.doors.all = []door{wsDoor{e.doors.ws}, httpDoor{kit, dc.Carriers, dc.Limits}}
	if p.IAT.On {
		ic := p.IATDoor(e.log)
		ic.Approvals, ic.Tools = e.approvals, e.tools
		e.doors.iat = iat.New(e.node, kit, ic)
		e.doors.all = append(e.doors.all, iatDoor{e.doors.iat})
	}
	if e.ports.grpc != nil {
		if err := e.openAIP(p, dc.Carriers); err != nil {
			return err
		}
	}
	if e.ports.p2p == "" {
		return nil
	}
	return e.openP2P(p, kit, dc.Carriers)
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
