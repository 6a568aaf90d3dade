package loadgen

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
)

// notes are what went otherwise than it should.
type notes struct {
	twice, missed, gaps atomic.Int64

	mu     sync.Mutex // guards the fields below
	errors map[string]int64
	first  string // the first of them in words
	cut    int64  // connections lost
}

// failed notes an error by its code.
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
