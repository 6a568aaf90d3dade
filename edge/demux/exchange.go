package demux

import (
	"context"

	"github.com/agora-relay/agora"
)

// Exchange is one stream of a peer, or one message that is no stream, on its way to a reader. Its methods may be called
// from any goroutine, Next from one at a time.
type Exchange struct {
	queue     // guarded by Demux.mu, but for its catchup, which the reader alone reads with
	name      key
	first     uint64 // position of the first part that came here
	continued bool
	stream    bool
	call      string // answer box of the call that it is; empty where it is none
	bound     []key  // names that it was given
	closed    bool

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// exchange returns the exchange that begins with a message. mu is held.
func (d *Demux) exchange(k key, m *agora.Message) *Exchange {
	x := &Exchange{name: k, first: m.Seq, stream: m.Part != agora.Whole, call: m.Meta.Call}
	x.init(d, x)
	x.ctx, x.cancel = context.WithCancelCause(d.ctx)
	if x.call != "" {
		d.names.calls[x.call] = x
	}
	return x
}

// serve has the door read an exchange.
func (d *Demux) serve(x *Exchange) {
	defer x.Close()
	d.cfg.Serve(x)
}

// Peer returns who sends it.
func (x *Exchange) Peer() agora.AgentID { return x.name.peer }

// Stream returns the stream's id; empty where it is none.
func (x *Exchange) Stream() string { return x.name.stream }

// Continued reports whether the stream began before what comes here: an earlier holder of the session has read its
// beginning, or that is lost.
func (x *Exchange) Continued() bool { return x.continued }

// Context is over when the exchange is: closed, given up by its peer, by the cluster, or here, at once, whatever is
// still queued. Its cause says why: an *agora.Error, by ErrCancelled where the peer has cancelled.
func (x *Exchange) Context() context.Context { return x.ctx }

// Next returns the next part, and takes the one before it for consumed. It blocks while there is none, and reads the
// log where the exchange lags. io.EOF comes after the last part, and an *agora.Error where the exchange ends in another
// way, behind what was queued before: by ErrCancelled where its peer has cancelled it; with the code of an abort;
// STREAM_ABORTED where parts are lost; RATE_LIMITED where the reader was too slow, and UNAVAILABLE where the session is
// over here. Only ctx's own error is no end.
func (x *Exchange) Next(ctx context.Context) (Part, error) { return x.read(ctx) }

// Bind gives the exchange one more name: the stream in which the door answers it, or the request's id. A cancel by the
// peer, or an abort, of that name ends its Context.
func (x *Exchange) Bind(name string) {
	d := x.demux
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.closed {
		return
	}
	k := key{x.name.peer, name}
	x.bound = append(x.bound, k)
	d.names.bound[k] = x
}

// Close ends the exchange: what it was given is consumed, what still comes is dropped, and where that is not its end
// its peer is told, once, by a cancel of the stream: told reports whether it is, by this call. It does not block.
// Serve's return does it. Idempotent.
func (x *Exchange) Close() (told bool) {
	d := x.demux
	d.mu.Lock()
	if x.closed {
		d.mu.Unlock()
		return false
	}
	x.closed = true
	if x.stream {
		told = !x.complete && !d.closed
		x.giveUp()
	}
	c := x.drop()
	x.ended, x.err = true, errReleased
	x.forget()
	d.mu.Unlock()
	x.cancel(errReleased)
	if c != nil {
		c.Close()
	}
	d.acknowledge()
	return told
}

// forget takes the exchange out of its Demux, and lets another one in. mu is held.
func (x *Exchange) forget() {
	d := x.demux
	if x.stream {
		d.served--
	} else {
		d.whole--
		d.serveBacklog()
	}
	d.names.forget(x)
}

// stop ends the exchange's Context. mu is held.
func (x *Exchange) stop(err error) { x.cancel(err) }

// fail ends the exchange at once; what is queued is dropped. mu is held.
func (x *Exchange) fail(err *agora.Error) {
	if x.stream {
		x.giveUp()
	}
	if c := x.drop(); c != nil {
		x.demux.background(c.Close)
	}
	x.ended, x.err = true, err
	x.stop(err)
	x.signal()
}

// giveUp has the peer told that nobody reads its stream any more, unless that has ended. Until that is stored the
// position stays before what was not consumed: should this edge die, the next holder of the session gives the stream
// up, and does not go on over a hole. mu is held.
func (x *Exchange) giveUp() {
	d := x.demux
	if x.complete || d.closed {
		return
	}
	x.complete = true
	d.names.given.add(x.name)
	var some bool
	if x.pinned, x.record, some = x.unconsumed(); !some {
		x.pinned, x.record = d.position.at+1, d.position.records
	}
	d.position.weigh(&x.queue)
	d.background(func() {
		if d.tellPeer(x.name, x.first) {
			d.unpin(x)
		}
	})
}

// unpin lets the position pass an exchange that was given up.
func (d *Demux) unpin(x *Exchange) {
	d.mu.Lock()
	x.pinned = 0
	d.position.weigh(&x.queue)
	d.mu.Unlock()
	d.acknowledge()
}
