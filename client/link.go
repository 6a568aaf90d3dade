package client

import (
	"bytes"
	"time"

	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

const (
	defaultHeartbeat = 30 * time.Second
	goodbyeTime      = 2 * time.Second // for the other side to confirm a close
)

// link is one connection, bound to the agent.
type link struct {
	conn      *websocket.Conn
	heartbeat time.Duration
	agent     string // which agent the credentials are for, where that is one alone; escaped
	resumed   bool
	after     uint64       // position after which the mailbox continues, where placed
	placed    bool         // the edge has told it
	expires   time.Time    // when the credentials end; zero for never
	notBefore time.Time    // when the edge, which is leaving, wants a reconnect; the reader's
	buf       bytes.Buffer // of the frame being read; the reader's
}

// answer returns the answer to a registration: agent.registered or error.
func (l *link) answer(id string) (*wire.Frame, error) {
	f := new(wire.Frame)
	for {
		b, err := l.read()
		if err != nil {
			return nil, closeError(err)
		}
		if err := wire.DecodeAnswer(b, f); err != nil {
			return nil, err
		}
		of := f.ID
		if f.Type == "error" {
			of = f.RequestID
		}
		if (f.Type == "error" || f.Type == "agent.registered") && (of == id || of == "") {
			return f, nil
		}
	}
}

// begin acknowledges what was dealt with before the connection, which is nothing new: it tells the edge that this
// client acknowledges, so that what it writes from now on is not taken for read when a pong comes. It comes before
// anything is read: the pong of a ping that came with the first message would be believed.
func (l *link) begin() error {
	if !l.placed {
		return nil
	}
	f := wire.Frame{Type: "ack", Seq: l.after}
	return l.conn.WriteMessage(websocket.TextMessage, f.Append(nil))
}

// read returns the next frame, in a buffer that the next read takes again.
func (l *link) read() ([]byte, error) {
	_, r, err := l.conn.NextReader()
	if err != nil {
		return nil, err
	}
	if l.buf.Cap() > 1<<20 {
		l.buf = bytes.Buffer{}
	}
	l.buf.Reset()
	_, err = l.buf.ReadFrom(r)
	return l.buf.Bytes(), err
}

// extend gives the edge time to say something.
func (l *link) extend() error { return l.conn.SetReadDeadline(time.Now().Add(l.patience())) }

// pong answers a ping.
func (l *link) pong(data string) error {
	// An edge that misses a pong asks again; a broken socket shows in the next read.
	_ = l.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(l.heartbeat))
	return l.extend()
}

// patience is how long the edge may be silent. It answers our pings, of which there are three in a heartbeat, but not
// while it reads no faster than a rate allows. Where the edge's machine is gone, its sessions are over after a lease
// and the grace (10 s and 30 s): the client should be elsewhere by then. Where heartbeats are short, one and a half of
// them pass.
func (l *link) patience() time.Duration { return max(l.heartbeat, min(l.heartbeat*3/2, shortSilence)) }

// shortSilence bounds one and a half heartbeats. Of a longer heartbeat one has to do.
const shortSilence = 15 * time.Second

// leave ends the connection and the session.
func (l *link) leave() {
	defer l.conn.Close()
	deadline := time.Now().Add(goodbyeTime)
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if l.conn.WriteControl(websocket.CloseMessage, bye, deadline) != nil {
		return
	}
	l.conn.SetReadDeadline(deadline)
	for {
		if _, _, err := l.conn.NextReader(); err != nil {
			return
		}
	}
}
