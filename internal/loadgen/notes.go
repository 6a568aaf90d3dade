package loadgen

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora/wire"
)

// notes are what went otherwise than it should.
type notes struct {
	twice, missed, alien, gaps atomic.Int64

	mu     sync.Mutex // guards the fields below
	errors map[string]int64
	first  string // the first of them in words
	denied string // why an agent could not join, the last time
	cut    int64  // connections lost
}

// failed notes an error frame.
func (n *notes) failed(code, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.errors == nil {
		n.errors = map[string]int64{}
	}
	n.errors[code]++
	if n.first == "" {
		n.first = fmt.Sprintf("%s (%s)", message, code)
	}
}

// remember keeps why an agent could not join: it will try again.
func (n *notes) remember(code, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.denied = fmt.Sprintf("%s (%s)", message, code)
}

// words returns why an agent could not join, the last time.
func (n *notes) words() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.denied
}

// lost notes a connection that ended.
func (n *notes) lost(id string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut++
	if n.first == "" {
		n.first = fmt.Sprintf("%s lost its connection: %v", id, err)
	}
}

// tell writes the notes into a result.
func (n *notes) tell(r *Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Errors, r.First, r.Cut = maps.Clone(n.errors), n.first, n.cut
	r.Twice, r.Missed, r.Gaps = n.twice.Load(), n.missed.Load(), n.gaps.Load()
}

// An agent acknowledges when it has got so many frames, or this long after it did before.
const (
	ackBatch = 64
	ackEvery = int64(1e9)
)

// acknowledge tells the edge now and then how far the agent is, if it is one that does.
func (a *agent) acknowledge(frame []byte) {
	if !a.run.cfg.Ack {
		return
	}
	if a.unacked++; a.unacked < ackBatch && a.conn.At()-a.acked < ackEvery {
		return
	}
	var f wire.Frame
	if err := wire.DecodeAnswer(frame, &f); err != nil {
		a.run.notes.failed("unreadable", err.Error())
		return
	}
	a.unacked, a.acked = 0, a.conn.At()
	_ = a.conn.Write(AppendText(nil, &wire.Frame{Type: "ack", Space: f.Space, Seq: f.Seq})) // its reader sees the end
}
