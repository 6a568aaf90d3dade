package broker

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// desk is what an inbox needs only while it has something to read: an inbox that is busy now and
// then, as most are, takes one for each answer. Whoever calls Next has it.
type desk struct {
	batch []live          // what take has taken from the queue
	msgs  []agora.Message // what Next returned last
}

// desks are those that no inbox needs now.
var desks = sync.Pool{New: func() any { return new(desk) }}

// keepAnswer is how many messages a desk has room for at most that is kept for later.
const keepAnswer = 4 * record.MaxParts

// sit returns the inbox's desk, on which nothing lies of what Next returned last.
func (i *Inbox) sit() *desk {
	if i.desk == nil {
		i.desk = desks.Get().(*desk)
	}
	clear(i.desk.msgs)
	i.desk.msgs = i.desk.msgs[:0]
	return i.desk
}

// leave lets go of the desk, on which nothing lies.
func (i *Inbox) leave() {
	d := i.desk
	i.desk = nil
	if i.r != nil {
		i.r.Release()
	}
	if cap(d.msgs) <= keepAnswer && cap(d.batch) <= keepAnswer {
		desks.Put(d)
	}
}
