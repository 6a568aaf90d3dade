package demux

import "github.com/agora-relay/agora/edge"

// message has a message that is no stream served, once there is room. Those that wait are in a queue like any other, which lags when
// it is full.
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

// admits reports whether the usher has something to do; it ends if not.
func (d *Demux) admits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usher = d.whole < d.cfg.Whole && d.waits()
	return d.usher
}
