package client

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

// read takes in frames until the connection is lost, and returns why. over
// ends the connection later on.
func (c *Client) read(ctx context.Context, over context.CancelCauseFunc, l *link) error {
	l.conn.SetPingHandler(c.ponger(l))
	l.conn.SetPongHandler(func(string) error { return l.extend() })
	var f wire.Frame
	for {
		if err := c.mail.admit(ctx); err != nil {
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
			c.cfg.Log.Warn("frame not understood", "agent", c.cfg.Agent, "err", err)
			continue
		}
		if f.Type == "agent.reconnect" && l.notBefore.IsZero() {
			after := time.Duration(f.AfterMS) * time.Millisecond
			l.notBefore = time.Now().Add(after)
			defer time.AfterFunc(after, func() { over(errMoved) }).Stop()
		}
		c.dispatch(&f, b)
	}
}

// extend gives the edge time to say something.
func (l *link) extend() error { return l.conn.SetReadDeadline(time.Now().Add(l.patience())) }

// ponger answers pings.
func (c *Client) ponger(l *link) func(string) error {
	return func(data string) error {
		// An edge that misses a pong asks again; a broken socket shows in the next read.
		_ = l.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(l.heartbeat))
		return l.extend()
	}
}

// dispatch hands a frame to whom it concerns. b is what f was decoded from.
func (c *Client) dispatch(f *wire.Frame, b []byte) {
	switch f.Type {
	case "message", "message_chunk", "message_end", "reply", "reply_chunk", "reply_end", "cancel":
		c.deliver(f, ErrCancelled)
	case "receipt":
		c.receipt(f)
	case "error":
		c.fault(f)
	case "gap":
		c.gap(f)
	case "agents", "agents.found", "card", "agent.refreshed", "agent.registered", "space.list", "space.created", "space.left", "space.published":
		c.answered(f.ID, b, f.Type == "space.published")
	case "tool.chunk", "tool.result", "handoff.chunk", "handoff.result":
		c.answeredCall(f)
	case "space.joined":
		if s := c.space(f.Space); s != nil {
			s.joined(f)
		}
		c.answered(f.ID, b, false)
	case "space.event", "space.event.delta", "space.event.done", "space.event.cancel", "space.members":
		if s := c.space(f.Space); s != nil {
			s.deliver(f)
		}
	}
}

// deliver hands a frame to the mailbox. An end of a stream that does not come in
// fails the one that goes out under that name.
func (c *Client) deliver(f *wire.Frame, end error) {
	switch c.mail.deliver(f) {
	case headless:
		c.tell(Gap{From: f.From, StreamID: f.StreamID})
	case outbound:
		c.out.fail(outKey{laneKey{agent: f.From}, f.StreamID}, end)
	}
}

func (c *Client) receipt(f *wire.Frame) {
	if f.Status != "stored" { // came through the mailbox
		c.later(f)
		return
	}
	if f.N > 0 {
		c.out.receipt(laneKey{f.To, f.Space}, f.N)
	}
	if f.RequestID != "" && !c.asked(f.RequestID) {
		c.out.answered(f.RequestID, nil)
	}
}

// later takes a receipt of a tier beyond stored.
func (c *Client) later(f *wire.Frame) {
	if tier, known := wire.TierOf(f.Status); known && f.N > 0 {
		c.out.reached(f.To, f.N, tier)
	}
	c.pass(f)
}

// pass moves the mailbox past a frame that concerns nobody.
func (c *Client) pass(f *wire.Frame) {
	f.N = 0 // that of what it speaks of
	c.mail.mu.Lock()
	defer c.mail.mu.Unlock()
	if ticket, fresh := c.mail.enter(f); fresh {
		c.mail.settle(ticket)
	}
}

func (c *Client) gap(f *wire.Frame) {
	l := &c.mail.inlog
	if f.Space != "" {
		s := c.space(f.Space)
		if s == nil {
			return
		}
		l = &s.log
	}
	if from, hole := l.skip(f.FromSeq, f.ToSeq); hole {
		c.tell(Gap{Space: f.Space, FromSeq: from, ToSeq: f.ToSeq})
	}
}

// tell tells the application of a gap.
func (c *Client) tell(g Gap) {
	c.cfg.Log.Warn("messages may be lost", "agent", c.cfg.Agent, "space", g.Space, "stream", g.StreamID)
	c.cfg.OnGap(g)
}

// fault hands an error to whoever did what it speaks of.
func (c *Client) fault(f *wire.Frame) {
	err := frameError(f)
	to := laneKey{agent: f.To}
	if f.To == "" {
		to.space = f.Space
	}
	switch key := (outKey{to, f.StreamID + f.EventID}); {
	case f.From != "": // of a stream or request that comes in; a request of ours fails with its addressee in to
		c.deliver(f, err)
		return
	case err.Code == agora.Unavailable && c.out.hold(key, f.N, f.RequestID, err):
		return
	case c.out.answered(f.RequestID, err), c.failRequest(f.RequestID, err):
		c.failJoin(f, err)
		return
	case err.Code == agora.StreamNotFound && (c.out.refuseCancel(key) || c.gaveUp(requestKey{f.To, f.StreamID})):
		return
	case key.id != "" && c.failOut(key, err):
		return
	case (f.N > 0 || key.id == "" && f.To != "") && c.out.refuse(to, f.N, err): // of a space alone: of a membership, or an ack
		return
	case err.Code == agora.MessageTooLarge && c.out.refuseLargest(err):
		return
	}
	c.cfg.Log.Warn("error that concerns nothing under way", "agent", c.cfg.Agent, "err", err)
}

// failOut fails a stream that goes out; it returns false when there is none.
func (c *Client) failOut(key outKey, err error) bool {
	known, _ := c.out.fail(key, err)
	return known
}
