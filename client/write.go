package client

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

// ackDelay is how long something that is done with may wait for its acknowledgement.
const ackDelay = 200 * time.Millisecond

// savePause is how long positions may be younger than what State has of them.
const savePause = time.Second

// writer writes one connection.
type writer struct {
	c     *Client
	l     *link
	buf   []byte
	frame wire.Frame
	retry *time.Timer // runs while something that was refused is to be sent again
	acks  *time.Timer // runs while something is to be acknowledged
	armed bool
}

// write writes what is queued, acknowledgements and heartbeats until ctx ends,
// and says goodbye when the client is closed. It returns what ended it.
func (c *Client) write(ctx context.Context, l *link) error {
	w := &writer{c: c, l: l, acks: time.NewTimer(time.Hour), retry: time.NewTimer(time.Hour)}
	defer w.acks.Stop()
	defer w.retry.Stop()
	w.acks.Stop()
	w.retry.Stop()
	beat := time.NewTicker(l.heartbeat / 3)
	defer beat.Stop()
	for beats := 1; ; {
		if c.mail.refetch() {
			return errMoved
		}
		if err := w.flush(); err != nil {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.goodbye:
			return w.goodbye(ctx)
		case <-c.wake:
		case <-w.retry.C:
		case <-w.acks.C:
			w.armed = false
			err = w.acknowledge(true)
		case <-beat.C:
			err = w.beat(beats%3 == 0)
			beats++
		}
		if err != nil {
			return err
		}
	}
}

// begin acknowledges what was dealt with before the connection, which is nothing new: it tells the edge that this
// client acknowledges, so that what it writes from now on is not taken for read when a pong comes. It comes before anything
// is read: the pong of a ping that came with the first message would be believed.
func (l *link) begin() error {
	if !l.placed {
		return nil
	}
	f := wire.Frame{Type: "ack", Seq: l.after}
	return l.conn.WriteMessage(websocket.TextMessage, f.Append(nil))
}

// flush writes what is queued, what is to be sent again by now, and the
// acknowledgements that are due.
func (w *writer) flush() error {
	if wait := w.c.out.revive(); wait > 0 {
		w.retry.Reset(wait)
	}
	for {
		w.buf = w.c.out.encode(w.buf[:0], &w.frame)
		if len(w.buf) == 0 {
			return w.acknowledge(false)
		}
		if err := w.send(); err != nil {
			return err
		}
	}
}

func (w *writer) send() error { return w.l.conn.WriteMessage(websocket.TextMessage, w.buf) }

// acknowledge tells the edge what is done with: all of it, or only what is much.
func (w *writer) acknowledge(all bool) error {
	later := false
	for _, l := range w.c.logs() {
		seq, ok, pending := l.due(all)
		later = later || pending
		if !ok {
			continue
		}
		f := wire.Frame{Type: "ack", Space: l.space, Seq: seq}
		w.buf = f.Append(w.buf[:0])
		if err := w.send(); err != nil {
			return err
		}
	}
	if later && !w.armed {
		w.acks.Reset(ackDelay)
		w.armed = true
	}
	if all {
		w.c.save(false)
	}
	return nil
}

// beat sends a ping, whose answer shows that the edge lives, and sometimes a heartbeat.
func (w *writer) beat(heartbeat bool) error {
	now := time.Now()
	if err := w.l.conn.WriteControl(websocket.PingMessage, nil, now.Add(w.l.heartbeat)); err != nil {
		return err
	}
	if !heartbeat || w.c.card.Load() == nil {
		return nil
	}
	f := wire.Frame{Type: "agent.heartbeat", Timestamp: strconv.AppendInt(nil, now.Unix(), 10)}
	w.buf = f.Append(w.buf[:0])
	return w.send()
}

// goodbye writes what is queued, acknowledges everything and ends the session.
// The reader sees the edge confirm it; one that does not is left after a moment.
func (w *writer) goodbye(ctx context.Context) error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.acknowledge(true); err != nil {
		return err
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if err := w.l.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(goodbyeTime)); err != nil {
		return err
	}
	pause.For(ctx, goodbyeTime)
	return ErrClosed
}

// logs returns the logs that have something to acknowledge now and then.
func (c *Client) logs() []*inlog {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*inlog, 1, 1+len(c.spaces))
	all[0] = &c.mail.inlog
	for _, s := range c.spaces {
		all = append(all, &s.log)
	}
	return all
}

// save hands the positions to Config.State: at most once a second, or now.
// The writer calls it, and run when no writer runs.
func (c *Client) save(now bool) {
	if c.cfg.State == nil || !now && time.Since(c.saved) < savePause {
		return
	}
	c.saved = time.Now()
	p := Positions{Spaces: c.left()}
	p.LastSeq, _ = c.mail.settled()
	if p.Spaces == nil {
		p.Spaces = map[string]uint64{}
	}
	for _, s := range c.joined() {
		if seq, known := s.log.settled(); known {
			p.Spaces[s.name] = seq
		}
	}
	if err := c.cfg.State.Save(context.WithoutCancel(c.ctx), p); err != nil {
		c.cfg.Log.Warn("positions not saved", "agent", c.cfg.Agent, "err", err)
	}
}

// left returns the positions of spaces that an earlier run was in.
func (c *Client) left() map[string]uint64 {
	c.mail.mu.Lock()
	defer c.mail.mu.Unlock()
	return maps.Clone(c.mail.spaces)
}

// joined returns the spaces that the client is in.
func (c *Client) joined() []*Space {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.spaces))
}
