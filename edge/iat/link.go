package iat

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire/iat"
)

// link is what a session has to tell its agent until the goroutine that writes takes it: the session's Conn, whatever writes.
type link struct {
	signal   chan struct{} // holds one token while there is something to take
	receipts agora.Receipts

	mu    sync.Mutex // guards the fields below
	items []item
	asked map[string]bool // envelopes of which a receipt is wanted; made when there is one
	tasks map[task]bool   // that the agent has given to others and knows of no end of; made when there is one
	woken bool            // a pull may have something
	why   *edge.Reason    // the link is to end; nil while it is not
}

// item is something to be told beside deliveries: an envelope, or a notice of the session.
type item struct {
	envelope []byte // nil for a notice
	notice   edge.Notice
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

// maxNotices bounds what waits to be told beside deliveries: an agent that takes none of it is given up.
const maxNotices = 4096

func newLink(receipts agora.Receipts) *link {
	return &link{signal: make(chan struct{}, 1), receipts: receipts}
}

// tell says that there is something to take. It does not block.
func (l *link) tell() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// Wake is called by the session when Pull has something.
func (l *link) Wake() {
	l.mu.Lock()
	l.woken = true
	l.mu.Unlock()
	l.tell()
}

// Notify keeps a notice until it is written.
func (l *link) Notify(n edge.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.Kind != edge.NoticeReceipt || l.wants(n) {
		l.put(item{notice: n})
	}
}

// say keeps an envelope until it is written.
func (l *link) say(envelope []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(item{envelope: envelope})
}

// put keeps an item; mu is held.
func (l *link) put(i item) {
	if len(l.items) >= maxNotices {
		l.end(edge.Reason{Cause: edge.Stalled, Text: "the agent takes nothing of what it is told"})
		return
	}
	l.items = append(l.items, i)
	l.tell()
}

// wants reports whether the agent has asked for a receipt. mu is held.
func (l *link) wants(n edge.Notice) bool {
	if l.receipts&n.Tier != 0 {
		return true
	}
	wanted := l.asked[n.RequestID]
	delete(l.asked, n.RequestID)
	return wanted
}

// ask notes that a receipt of an envelope is wanted.
func (l *link) ask(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil || len(l.asked) > maxNotices {
		l.asked = map[string]bool{}
	}
	l.asked[id] = true
}

// Close has the link end once what there is was written.
func (l *link) Close(r edge.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(r)
}

// end is Close; mu is held.
func (l *link) end(r edge.Reason) {
	if l.why == nil {
		l.why = &r
	}
	l.tell()
}

// take returns what there is.
func (l *link) take() (items []item, pull bool, why *edge.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	items, pull, why = l.items, l.woken, l.why
	l.items, l.woken = nil, false
	return items, pull && why == nil, why
}

var _ edge.Conn = (*link)(nil)
