package client

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// dispatcher hands what comes in to whom it concerns.
type dispatcher struct {
	log    *slog.Logger
	onGap  func(Gap) // of Config.OnGap
	out    *outbox
	asks   *correlator
	mail   *mailbox
	spaces *memberships
}

// read takes in frames until the connection is lost, and returns why. over
// ends the connection later on.
func (d *dispatcher) read(ctx context.Context, over context.CancelCauseFunc, l *link) error {
	l.conn.SetPingHandler(l.pong)
	l.conn.SetPongHandler(func(string) error { return l.extend() })
	var f wire.Frame
	for {
		if err := d.mail.admit(ctx); err != nil {
			return err
		}
		if err := l.extend(); err != nil {
			return err
		}
		b, err := l.read()
		if err != nil {
			return closeError(err)
		}
		if err := wire.DecodeAnswer(b, &f); err != nil {
			d.log.Warn("frame not understood", "err", err)
			continue
		}
		if f.Type == "agent.reconnect" && l.notBefore.IsZero() {
			after := time.Duration(f.AfterMS) * time.Millisecond
			l.notBefore = time.Now().Add(after)
			defer time.AfterFunc(after, func() { over(errMoved) }).Stop()
		}
		d.dispatch(&f, b)
	}
}

// dispatch hands a frame to whom it concerns. b is what f was decoded from.
func (d *dispatcher) dispatch(f *wire.Frame, b []byte) {
	switch f.Type {
	case "message", "message_chunk", "message_end", "reply", "reply_chunk", "reply_end", "cancel":
		d.deliver(f, ErrCancelled)
	case "receipt":
		d.receipt(f)
	case "error":
		d.fault(f)
	case "gap":
		d.gap(f)
	case "agents", "agents.found", "card", "agent.refreshed", "agent.registered", "space.list", "space.created", "space.left", "space.published":
		d.answered(f.ID, b, f.Type == "space.published")
	case "tool.chunk", "tool.result", "handoff.chunk", "handoff.result":
		d.answeredCall(f)
	case "space.joined":
		if s := d.spaces.space(f.Space); s != nil {
			s.joined(f)
		}
		d.answered(f.ID, b, false)
	case "space.event", "space.event.delta", "space.event.done", "space.event.cancel", "space.members":
		if s := d.spaces.space(f.Space); s != nil {
			s.deliver(f)
		}
	}
}

// deliver hands a frame to the mailbox. An end of a stream that does not come in
// fails the one that goes out under that name.
func (d *dispatcher) deliver(f *wire.Frame, end error) {
	switch d.mail.deliver(f) {
	case headless:
		d.tell(Gap{From: f.From, StreamID: f.StreamID})
	case outbound:
		d.out.fail(outKey{laneKey{agent: f.From}, f.StreamID}, end)
	}
}

// answered takes the answer to a question, which is in b. A numbered frame has a
// receipt, besides, and waits for that.
func (d *dispatcher) answered(id string, b []byte, numbered bool) {
	d.asks.answer(id, b)
	if !numbered {
		d.out.answered(id, nil)
	}
}

// answeredCall takes in what is answered to a call.
func (d *dispatcher) answeredCall(f *wire.Frame) {
	if t := d.asks.call(f.ID); t != nil && t.deliver(f) {
		d.asks.over(t)
		d.out.answered(t.id, nil)
	}
}

func (d *dispatcher) receipt(f *wire.Frame) {
	if f.Status != "stored" { // came through the mailbox
		d.later(f)
		return
	}
	if f.N > 0 {
		d.out.receipt(laneKey{f.To, f.Space}, f.N)
	}
	if f.RequestID != "" && !d.asks.asked(f.RequestID) {
		d.out.answered(f.RequestID, nil)
	}
}

// later takes a receipt of a tier beyond stored.
func (d *dispatcher) later(f *wire.Frame) {
	if tier, known := wire.TierOf(f.Status); known && f.N > 0 {
		d.out.reached(f.To, f.N, tier)
	}
	d.mail.pass(f)
}

func (d *dispatcher) gap(f *wire.Frame) {
	l := d.mail.inlog
	if f.Space != "" {
		s := d.spaces.space(f.Space)
		if s == nil {
			return
		}
		l = &s.log
	}
	if from, hole := l.skip(f.FromSeq, f.ToSeq); hole {
		d.tell(Gap{Space: f.Space, FromSeq: from, ToSeq: f.ToSeq})
	}
}

// tell tells the application of a gap.
func (d *dispatcher) tell(g Gap) {
	d.log.Warn("messages may be lost", "space", g.Space, "stream", g.StreamID)
	d.onGap(g)
}

// fault hands an error to whoever did what it speaks of.
func (d *dispatcher) fault(f *wire.Frame) {
	err := frameError(f)
	to := laneKey{agent: f.To}
	if f.To == "" {
		to.space = f.Space
	}
	if err.Code == agora.RateLimited && err.Passes() && f.N > 0 {
		d.out.overRate(to, f.N)
	}
	if f.Seq > 0 && f.From == "" { // it comes through the mailbox: what was stored is not given to its receiver
		n := f.N
		d.mail.pass(f)
		f.N = n
		d.out.undelivered(to, n, err)
	}
	switch key := (outKey{to, f.StreamID + f.EventID}); {
	case f.From != "": // of a stream or request that comes in; a request of ours fails with its addressee in to
		d.deliver(f, err)
		return
	case err.Code == agora.Unavailable && d.out.hold(key, f.N, f.RequestID, err):
		return
	case d.out.answered(f.RequestID, err), d.asks.failRequest(f.RequestID, err):
		d.spaces.failJoin(f, err)
		return
	case err.Code == agora.StreamNotFound && (d.out.refuseCancel(key) || d.asks.gaveUp(requestKey{f.To, f.StreamID})):
		return
	case key.id != "" && d.failOut(key, err):
		return
	case (f.N > 0 || key.id == "" && f.To != "") && d.out.refuse(to, f.N, err): // of a space alone: of a membership, or an ack
		return
	case err.Code == agora.MessageTooLarge && d.out.refuseLargest(err):
		return
	}
	if f.Seq == 0 || f.N == 0 { // else whoever waited for a receipt was told
		d.log.Warn("error that concerns nothing under way", "err", err)
	}
}

// failOut fails a stream that goes out; it returns false when there is none.
func (d *dispatcher) failOut(key outKey, err error) bool {
	known, _ := d.out.fail(key, err)
	return known
}
