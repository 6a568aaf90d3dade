package client

import (
	"context"
	"strconv"
	"time"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

// ackDelay is how long something that is done with may wait for its acknowledgement.
const ackDelay = 200 * time.Millisecond

// writer writes one connection.
type writer struct {
	l           *link
	out         *outbox
	mail        *mailbox
	checkpoints *checkpoints
	life        *lifetime
	wake        <-chan struct{} // holds a token while there is something to write
	beats       bool            // heartbeats go out

	buf   []byte
	frame wire.Frame
	retry *time.Timer // runs while something that was refused is to be sent again
	acks  *time.Timer // runs while something is to be acknowledged
	armed bool
}

// run writes what is queued, acknowledgements and heartbeats until ctx ends,
// and says goodbye when the client is closed. It returns what ended it.
func (w *writer) run(ctx context.Context) error {
	w.acks, w.retry = time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer w.acks.Stop()
	defer w.retry.Stop()
	w.acks.Stop()
	w.retry.Stop()
	beat := time.NewTicker(w.l.heartbeat / 3)
	defer beat.Stop()
	for beats := 1; ; {
		if w.mail.refetch() {
			return errMoved
		}
		if err := w.flush(); err != nil {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.life.goodbye:
			return w.goodbye(ctx)
		case <-w.wake:
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

// flush writes what is queued, what is to be sent again by now, and the
// acknowledgements that are due.
func (w *writer) flush() error {
	if wait := w.out.revive(); wait > 0 {
		w.retry.Reset(wait)
	}
	for {
		w.buf = w.out.encode(w.buf[:0], &w.frame)
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
	for _, l := range w.checkpoints.logs() {
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
		w.checkpoints.save(false)
	}
	return nil
}

// beat sends a ping, whose answer shows that the edge lives, and sometimes a heartbeat.
func (w *writer) beat(heartbeat bool) error {
	now := time.Now()
	if err := w.l.conn.WriteControl(websocket.PingMessage, nil, now.Add(w.l.heartbeat)); err != nil {
		return err
	}
	if !heartbeat || !w.beats {
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
