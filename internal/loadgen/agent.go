package loadgen

import (
	"bytes"
	"errors"
	"net"
	"sync"

	"github.com/agora-relay/agora/wire"
)

// agent is one agent of a load, and reads what its edge sends.
type agent struct {
	run   *Run
	id    string
	edge  int // which of those that there are
	conn  *Conn
	shard int

	reader sync.WaitGroup // of its connection
	joined chan bool      // whether it is in the space that it asked to join

	next  map[int]uint64 // by line, the number of its message that comes next; the reader's own
	watch bool           // what it gets says that messages are through

	acked    int64  // when it acknowledged last; the reader's own
	unacked  int    // frames since; the reader's own
	position uint64 // of the first part of a storm; the reader's own, while it has one
}

// Beginnings of frames: edges write the type first.
var (
	receiptFrame = []byte(`{"type":"receipt"`)
	errorFrame   = []byte(`{"type":"error"`)
	gapFrame     = []byte(`{"type":"gap"`)
	readyFrame   = []byte(`{"type":"space.joined"`)
)

// begin reads from a new connection.
func (a *agent) begin(c *Conn) {
	a.conn = c
	a.reader.Go(a.read)
}

// read takes what comes until the connection ends.
func (a *agent) read() {
	for {
		frame, err := a.conn.Next()
		if err != nil {
			a.ended(err)
			return
		}
		a.take(frame)
	}
}

// ended notes a connection that ended although the run goes on.
func (a *agent) ended(err error) {
	if a.run.over.Load() || errors.Is(err, net.ErrClosed) {
		return
	}
	a.run.notes.lost(a.id, err)
}

func (a *agent) take(frame []byte) {
	switch {
	case bytes.HasPrefix(frame, receiptFrame):
		a.receipt(frame)
	case bytes.HasPrefix(frame, errorFrame):
		a.failed(frame)
	case bytes.HasPrefix(frame, gapFrame):
		a.run.notes.gaps.Add(1)
	case bytes.HasPrefix(frame, readyFrame):
		a.told(true)
	default:
		if s, ok := find(frame); ok {
			a.arrived(s, frame)
			a.acknowledge(frame)
		}
	}
}

// arrived takes a message that is to come once, and in order.
func (a *agent) arrived(s stamp, frame []byte) {
	l := a.run.line(s)
	if l == nil {
		a.run.notes.alien.Add(1)
		return
	}
	switch next := a.next[s.line]; {
	case s.number < next:
		a.run.notes.twice.Add(1) // or too late
		return
	case s.number > next:
		a.run.notes.missed.Add(int64(s.number - next))
	}
	a.next[s.line] = s.number + 1
	a.run.meter.record(a.run.meter.shard(a.shard), s.at, a.conn.At(), l.measures(s.number))
	if a.watch {
		l.gate.through(1)
	}
	if a.run.storm != nil {
		a.run.storm.passed(a.run, a, s.number, frame)
	}
}

// receipt takes a receipt, which repeats the stamp as the id of what was sent.
func (a *agent) receipt(frame []byte) {
	s, ok := find(frame)
	if !ok {
		return
	}
	if l := a.run.line(s); l != nil {
		r := a.run.receipts
		r.record(r.shard(a.shard), s.at, a.conn.At(), l.measures(s.number))
		l.gate.through(1)
	}
}

// failed counts an error by its code.
func (a *agent) failed(frame []byte) {
	var f wire.Frame
	if err := wire.DecodeAnswer(frame, &f); err != nil {
		a.run.notes.failed("unreadable", err.Error())
		return
	}
	if f.RequestID == joinID {
		a.run.notes.remember(f.Code, f.Message)
		a.told(false)
		return
	}
	a.run.notes.failed(f.Code, f.Message)
	a.run.refused(f)
}

// told hands on whether the agent has joined.
func (a *agent) told(in bool) {
	select {
	case a.joined <- in:
	default: // it was told, and has not asked again
	}
}
