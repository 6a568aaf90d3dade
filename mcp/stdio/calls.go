package stdio

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agora-relay/agora/internal/rawjson"
)

// endless is the call that is answered when its host ends it, and not before.
const endless = "subscriptions/listen"

// call is a call that has no answer yet.
type call struct {
	id        []byte // as the host has spelled it
	endless   bool
	cancelled bool   // the host wants no answer
	batch     *batch // that it came in; nil where it came alone
}

// batch is a line with several messages, which are answered in a line.
type batch struct {
	open    int // calls that have no answer yet, and one more until the line is read
	answers [][]byte
}

// calls are the calls of a connection.
type calls struct {
	mu      sync.Mutex // guards the fields below, and those of the calls and batches
	all     map[jsonrpc.ID]*call
	open    int           // answers that were not written yet
	changed chan struct{} // closed when open changes
}

// begin takes a call in, whose id is spelled so. It returns false where another one has that id.
func (s *calls) begin(r *jsonrpc.Request, id []byte, b *batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[r.ID] != nil {
		return false
	}
	if s.all == nil {
		s.all = map[jsonrpc.ID]*call{}
	}
	k := &call{id: id, endless: r.Method == endless, batch: b}
	s.all[r.ID] = k
	if b != nil {
		b.open++
	}
	if !k.endless {
		s.open++
	}
	return true
}

// cancel notes that the call that a notification names wants no answer, and has it name the call as the session knows
// it.
func (s *calls) cancel(r *jsonrpc.Request) {
	var named []byte
	for o := rawjson.NewObject(r.Params, maxDepth); o.Next(); {
		if string(o.Name()) == "requestId" {
			named = o.Val
		}
	}
	id, ok := idOf(named)
	if !ok {
		return
	}
	if known, err := json.Marshal(id.Raw()); err == nil && !bytes.Equal(known, named) {
		r.Params = append(append([]byte(`{"requestId":`), known...), '}')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.all[id]; k != nil {
		k.cancelled = true
	}
}

// end returns the call that is answered now; there is false where there is none. Its id may be used again from then on.
func (s *calls) end(id jsonrpc.ID) (k *call, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there = s.all[id]
	delete(s.all, id)
	return k, there
}

// answered notes that the answer to a call was written.
func (s *calls) answered(k *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.endless {
		return
	}
	s.open--
	close(s.changed)
	s.changed = make(chan struct{})
}

// unanswered returns how many answers are still to be written, and a channel that is closed when that changes.
func (s *calls) unanswered() (open int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.changed
}

// collect adds an answer to those of a batch, nil for none, and returns them all once nothing more is to come; nil
// until then, and where there are none.
func (s *calls) collect(b *batch, answer []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.open--; answer != nil {
		b.answers = append(b.answers, answer)
	}
	if b.open > 0 || len(b.answers) == 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(b.answers, []byte{','})...), ']')
}

// takeBatch queues the messages of a line that is a list.
func (c *conn) takeBatch(text []byte) error {
	b := &batch{open: 1}
	l := rawjson.NewList(text, maxDepth)
	n := 0
	for ; l.Next(); n++ {
		m, refused := c.message(l.Val, b)
		if refused != nil {
			b.answers = append(b.answers, refused) // no call of it is known to anybody else yet
			continue
		}
		c.queue = append(c.queue, m)
	}
	if n == 0 {
		return c.send(refusal(jsonrpc.CodeInvalidRequest, "a list of messages is empty"))
	}
	if answers := c.calls.collect(b, nil); answers != nil {
		return c.send(answers)
	}
	return nil
}
