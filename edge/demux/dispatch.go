package demux

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// dispatch gives a delivery to the reader that it concerns; false where it concerns none. mu is held.
func (d *Demux) dispatch(v *edge.Delivery) bool {
	m := v.Message
	if m == nil {
		return false
	}
	if m.Kind == agora.Gap {
		d.gap()
		return false
	}
	d.position.begin(m.Seq)
	taken := d.route(v)
	d.position.at = m.Seq
	return taken
}

func (d *Demux) route(v *edge.Delivery) bool {
	m := v.Message
	switch {
	case m.Kind == agora.Control:
		return d.control(m)
	case !carries(m):
		return false
	case m.Part == agora.Whole:
		d.message(v)
		return true
	case m.Part == agora.Start:
		d.start(v)
		return true
	}
	return d.part(v)
}

// carries reports whether a message is one that an exchange is made of.
func carries(m *agora.Message) bool { return m.Kind == agora.Request || m.Kind == agora.Reply }

// start begins an exchange with a stream's first part, or with the first one that comes here.
func (d *Demux) start(v *edge.Delivery) {
	m := v.Message
	k := key{m.From, m.Stream}
	d.names.given.remove(k)
	if old := d.names.streams[k]; old != nil && !old.complete {
		old.complete = true
		old.fail(agora.Errorf(agora.StreamAborted, "another stream began under its name"))
	}
	if d.served >= d.cfg.Streams {
		d.refuse(k, m)
		return
	}
	x := d.exchange(k, m)
	x.continued = m.Part != agora.Start
	d.names.streams[k] = x
	d.served++
	x.put(v)
	d.background(func() { d.serve(x) })
}

// refuse cancels a stream that begins for its peer.
func (d *Demux) refuse(k key, m *agora.Message) {
	d.stats.GivenUp.Add(1)
	delete(d.names.streams, k)
	x := &Exchange{name: k, first: m.Seq, stream: true}
	x.init(d, x)
	x.giveUp()
}

// part hands on what follows in a stream. One that began before what comes here is an exchange nevertheless; its end
// alone is none, where that says only that it was given up.
func (d *Demux) part(v *edge.Delivery) bool {
	m := v.Message
	k := key{m.From, m.Stream}
	x := d.names.streams[k]
	switch {
	case d.names.given.has(k):
		return true
	case x == nil && m.Part <= agora.End:
		d.start(v)
		return true
	case x == nil:
		return false
	case m.Part <= agora.End:
		x.put(v)
	default:
		x.stop(ending(m))
		x.put(v)
	}
	return true
}

// control tells an exchange that its peer, or the cluster, has given it up.
func (d *Demux) control(m *agora.Message) bool {
	x := d.names.concerned(m)
	if x == nil {
		return false
	}
	x.err = ending(m)
	x.stop(x.err)
	x.signal()
	return true
}

// gap ends what may have lost parts to retention.
func (d *Demux) gap() {
	for _, x := range d.names.streams {
		if !x.complete || x.lagging {
			x.fail(errGap)
		}
	}
}
