package broker

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// readScratch is what an inbox needs only while it has something to read: an inbox that is busy now and
// then, as most are, takes one for each answer. Whoever calls Next has it.
type readScratch struct {
	batch []liveRecord    // what take has taken from the queue
	msgs  []agora.Message // what Next returned last
}

// scratchPool are those that no inbox needs now.
var scratchPool = sync.Pool{New: func() any { return new(readScratch) }}

// keepScratch is how many messages a scratch has room for at most that is kept for later.
const keepScratch = 4 * record.MaxParts

// acquire returns the inbox's scratch, which holds nothing of what Next returned last.
func (r *inboxReading) acquire() *readScratch {
	if r.scratch == nil {
		r.scratch = scratchPool.Get().(*readScratch)
	}
	clear(r.scratch.msgs)
	r.scratch.msgs = r.scratch.msgs[:0]
	return r.scratch
}

// release lets go of the scratch, which holds nothing.
func (r *inboxReading) release() {
	d := r.scratch
	r.scratch = nil
	if r.records != nil {
		r.records.Release()
	}
	if cap(d.msgs) <= keepScratch && cap(d.batch) <= keepScratch {
		scratchPool.Put(d)
	}
}
