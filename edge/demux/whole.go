package demux

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// message has a message that is no stream served, once there is room. Those that wait are in a queue like any other,
// which lags when it is full.
func (d *Demux) message(v *edge.Delivery) {
	if v.Message.Seq <= d.backlog.through { // which has read ahead
		return
	}
	if b := &d.backlog; d.whole < d.cfg.Whole && !d.usher && b.parts.len() == 0 && !b.lagging {
		x := d.exchange(key{v.Message.From, v.Message.Stream}, v.Message)
		x.put(v)
		d.begin(x)
		return
	}
	d.backlog.put(v)
	d.serveBacklog()
}

// begin has an exchange served that is no stream.
func (d *Demux) begin(x *Exchange) {
	x.complete = true
	d.whole++
	d.background(func() { d.serve(x) })
}

// serveBacklog has those that wait served, as far as there is room. mu is held.
func (d *Demux) serveBacklog() {
	if !d.usher && d.whole < d.cfg.Whole && d.waits() {
		d.usher = true
		d.background(d.ushers)
	}
}

func (d *Demux) waits() bool { return d.backlog.parts.len() > 0 || d.backlog.lagging }

// ushers begins exchanges of the backlog while there is room for them.
func (d *Demux) ushers() {
	for d.admits() {
		p, err := d.backlog.read(d.ctx)
		if err != nil {
			return // the Demux is closed
		}
		v := edge.Delivery{Message: &p.Message, Redelivered: p.Redelivered, DeadlineMS: p.DeadlineMS}
		d.mu.Lock()
		x := d.exchange(key{p.From, p.Stream}, &p.Message)
		x.accept(&v, p.record)
		d.position.weigh(&x.queue)
		d.backlog.consume() // it is the exchange's now
		d.begin(x)
		d.mu.Unlock()
	}
}

// lose notes a gap where the backlog reads the log: the messages that waited there are lost, so nobody is told
// that they have arrived. What is not dispatched yet comes live, or is in a gap that does: the backlog reads no
// further. lost is what the door is to be told. mu is held.
func (d *Demux) lose(gap *agora.Message) (lost []edge.Delivery) {
	b := &d.backlog
	first, last := max(b.missing, b.through+1), min(gap.Seq, d.position.at)
	b.through = max(b.through, last)
	if first > last {
		return nil
	}
	b.catchup.Lost(first, last)
	m := *gap
	m.N, m.Seq = first, last
	return []edge.Delivery{{Message: &m}}
}

// admits reports whether the usher has something to do; it ends if not.
func (d *Demux) admits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usher = d.whole < d.cfg.Whole && d.waits()
	return d.usher
}
