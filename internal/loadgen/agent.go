package loadgen

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// agent is one agent of a load, and takes what its connection receives.
type agent struct {
	run    *Run
	id     string
	role   Role
	server int
	conn   Agent
	shard  int

	reader sync.WaitGroup // of its connection

	next  map[int]uint64 // by line, the number of its message that comes next; the reader's own
	watch bool           // what it gets says that messages are through
}

// begin reads from a new connection.
func (a *agent) begin(c Agent) {
	a.conn = c
	a.reader.Go(func() { a.ended(c.Receive(a)) })
}

// ended notes a connection that ended although the run continues.
func (a *agent) ended(err error) {
	if a.run.over.Load() || errors.Is(err, net.ErrClosed) {
		return
	}
	a.run.notes.lost(a.id, err)
}

// Arrived implements Receiver: a message is to come once, and in order.
func (a *agent) Arrived(s Stamp, at int64) {
	l := a.run.line(s)
	if l == nil {
		a.run.notes.failed("foreign", fmt.Sprintf("%s got what nobody sent", a.id))
		return
	}
	next, heard := a.next[s.Line]
	switch {
	case s.Number == hello:
		if !heard {
			a.next[s.Line] = 0
			l.heard.Add(1)
		}
		return
	case s.Number < next:
		a.run.notes.twice.Add(1) // or too late
		return
	case s.Number > next:
		a.run.notes.missed.Add(int64(s.Number - next))
	}
	a.next[s.Line] = s.Number + 1
	a.run.meter.record(a.run.meter.shard(a.shard), s.At, at, l.measures(s.Number))
	l.got(a, next, s.Number+1)
	if a.run.storm != nil {
		a.run.storm.passed(a.run, s.Number, at)
	}
}

// Receipted implements Receiver. Some systems receipt all that is sent: what needs no receipt is not waiting for it.
func (a *agent) Receipted(s Stamp, at int64) {
	if kind := a.run.cfg.Kind; kind != OneShot && kind != stormKind {
		return
	}
	if l := a.run.line(s); l != nil && s.Number != hello {
		r := a.run.receipts
		r.record(r.shard(a.shard), s.At, at, l.measures(s.Number))
		l.gate.through(1)
	}
}

// Gap implements Receiver.
func (a *agent) Gap() { a.run.notes.gaps.Add(1) }

// Refused implements Receiver: it counts an error by its code.
func (a *agent) Refused(f Refusal) {
	a.run.notes.failed(f.Code, f.Message)
	switch {
	case f.Of != nil && f.Of.Number != hello:
		if l := a.run.line(*f.Of); l != nil {
			l.refuse(f.Of.Number, now()+int64(f.After/time.Nanosecond))
		}
	case f.Broken && f.Line >= 0 && f.Line < len(a.run.lines):
		a.run.lines[f.Line].kill()
	}
}
