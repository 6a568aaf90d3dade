package iat

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/wire/iat"
)

// line is what a downlink stands on: events, or a WebSocket. Its appending methods are called with the outbox locked, or by the writer.
type line interface {
	begin(dst []byte, seq uint64) []byte                      // appends what stands before an envelope
	end(dst []byte, at int, seq uint64) []byte                // appends what stands behind an envelope that begins at a place in dst
	reconnect(dst []byte, after time.Duration) []byte         // appends that the agent is to come back elsewhere
	probe(dst []byte, data uint64) []byte                     // asks for a sign of life, which the session's Pong is told
	last(dst []byte, why edge.Reason) []byte                  // appends what is said last, where the line itself says it
	write(b []byte, w *deliver.Writer) (taken int, err error) // as deliver.Line says
	cut()                                                     // has the line end at once
}

// link is the downlink of an agent: the session's Conn, and the line of its outbox.
type link struct {
	door     *Door
	line     line
	out      deliver.Outbox
	agent    agora.AgentID
	receipts agora.Receipts
	streams  map[stream]string // ids of the envelopes that opened streams to the agent; made when there is one. The writer's
	told     atomic.Int64      // envelopes that were written, or are to be

	mu    sync.Mutex      // guards the fields below; the outbox may be locked, and is not called
	asked map[string]bool // envelopes of which a receipt is wanted; made when there is one
	tasks map[task]bool   // that the agent has given to others and knows of no end of; made when there is one
	why   edge.Reason     // the link ends; the zero value while it does not
}

// newLink returns a link to a line that is not up yet: what it is told waits until its outbox is started.
func (d *Door) newLink(l line, h *edge.Hello) *link {
	k := &link{door: d, line: l, agent: h.Card.ID, receipts: h.Receipts}
	k.out.Init(k, &d.writers, h.Admission)
	k.out.Hold()
	return k
}

// task is a task that was given.
type task struct {
	callee  agora.AgentID
	request string
}

// maxTasks bounds how many tasks a link has in mind. Those beyond it end by themselves.
const maxTasks = 1024

// gives notes that the agent gives a task.
func (l *link) gives(e *iat.Envelope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks == nil {
		l.tasks = map[task]bool{}
	}
	if len(l.tasks) < maxTasks {
		l.tasks[task{agora.AgentID(e.To), e.ID}] = true
	}
}

// ends reports whether the answer to a request of the agent's ends a task that it has given.
func (l *link) ends(callee agora.AgentID, request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := task{callee, request}
	given := l.tasks[k]
	delete(l.tasks, k)
	return given
}

// start lets deliveries of a session flow: the line is up.
func (l *link) start(s *edge.Session) {
	l.out.Session.Store(s)
	s.Begin()
	l.out.Start()
}

// Wake is called by the session when Pull has something.
func (l *link) Wake() { l.out.Wake() }

// Notify queues what the session tells its agent beside deliveries.
func (l *link) Notify(n edge.Notice) {
	switch n.Kind {
	case edge.NoticeReceipt:
		if !l.wants(n) {
			return
		}
	case edge.NoticePing, edge.NoticeReconnect, edge.NoticeFault:
	default: // the dialect has no word for it
		return
	}
	b, ok := l.out.Begin()
	if !ok {
		return
	}
	switch n.Kind {
	case edge.NoticePing:
		b = l.line.probe(b, n.Data)
	case edge.NoticeReconnect:
		b = l.line.reconnect(b, n.After)
	case edge.NoticeFault:
		id := n.RequestID
		if id == "" {
			id = n.Stream
		}
		b = l.appendFault(b, &iat.Fault{Err: n.Err, ID: id, From: string(l.agent)})
	case edge.NoticeReceipt:
		b = l.appendReceipt(b, &n)
	}
	l.out.Commit(b)
}

// say queues an envelope.
func (l *link) say(envelope []byte) {
	if b, ok := l.out.Begin(); ok {
		b = l.line.begin(b, 0)
		l.out.Commit(l.end(append(b, envelope...), len(b), 0))
	}
}

// end appends what stands behind an envelope, and counts it.
func (l *link) end(dst []byte, at int, seq uint64) []byte {
	l.told.Add(1)
	return l.line.end(dst, at, seq)
}

// appendFault appends an error.
func (l *link) appendFault(dst []byte, f *iat.Fault) []byte {
	l.door.stats.Errors.Count(f.Err.Code)
	dst = l.line.begin(dst, 0)
	return l.end(iat.AppendFault(dst, l.door.says(), f), len(dst), 0)
}

// appendReceipt appends the receipt of an envelope, or of all chunks of a stream up to one.
func (l *link) appendReceipt(dst []byte, n *edge.Notice) []byte {
	e := l.door.says()
	e.Type, e.Parent, e.To = iat.Notification, n.RequestID, string(l.agent)
	if e.Parent == "" {
		e.Parent = n.Stream
	}
	e.Payload = append(strconv.AppendUint([]byte(`{"action":"`+iat.ActionReceipt+`","status":"stored","seq":`), n.Seq, 10), '}')
	dst = l.line.begin(dst, 0)
	return l.end(e.Append(dst), len(dst), 0)
}

// wants reports whether the agent has asked for a receipt.
func (l *link) wants(n edge.Notice) bool {
	if l.receipts&n.Tier != 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := l.asked[n.RequestID]
	delete(l.asked, n.RequestID)
	return wanted
}

// maxAsked bounds how many receipts a link has in mind that are wanted.
const maxAsked = 4096

// ask notes that a receipt of an envelope is wanted.
func (l *link) ask(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil || len(l.asked) > maxAsked {
		l.asked = map[string]bool{}
	}
	l.asked[id] = true
}

// Close has the link end once what there is was written, and why. One that ends already does so for the reason that it
// has: this one would not be told.
func (l *link) Close(r edge.Reason) {
	b, ok := l.out.Begin()
	if !ok {
		return
	}
	l.because(r)
	if r.Code != "" {
		b = l.appendFault(b, &iat.Fault{Err: agora.Errorf(r.Code, "%s", r.Text)})
	}
	l.out.CommitLast(l.line.last(b, r))
}

// because notes why the link ends. The first word counts.
func (l *link) because(r edge.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why.Cause == 0 {
		l.why = r
	}
}

// reason returns why the link has ended.
func (l *link) reason() edge.Reason {
	l.because(edge.Reason{Cause: edge.Lost})
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Write implements deliver.Line.
func (l *link) Write(b []byte, w *deliver.Writer) (int, error) { return l.line.write(b, w) }

// Kill implements deliver.Line.
func (l *link) Kill(why edge.Cause) {
	l.because(edge.Reason{Cause: why, Text: "the agent takes nothing of what it is told"})
	l.out.GiveUp()
	l.line.cut()
}

// Ended implements deliver.Line: all is said.
func (l *link) Ended(*deliver.Writer) { l.line.cut() }

// giveUp ends the link at once, as its request is over.
func (l *link) giveUp() {
	l.out.Shut()
	l.Kill(edge.Lost)
}

var (
	_ edge.Conn    = (*link)(nil)
	_ deliver.Line = (*link)(nil)
)
