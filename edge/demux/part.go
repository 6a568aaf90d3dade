package demux

import (
	"bytes"
	"unsafe"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// Part is one part of an exchange: the message alone, or a stream's start, chunk or end.
type Part struct {
	agora.Message
	Redelivered bool  // it may have been given before, at this edge or another
	DeadlineMS  int64 // time left until its deadline when it was read; 0 where it has none
	record      int64 // how many records had come with it
}

const (
	partSize  = int(unsafe.Sizeof(Part{}))
	copyBelow = 4 << 10 // bodies up to it are copied: one of them would keep a whole record
)

// newPart returns what a reader gets of a delivery.
func newPart(v *edge.Delivery, record int64) Part {
	p := Part{Message: *v.Message, Redelivered: v.Redelivered, DeadlineMS: v.DeadlineMS, record: record}
	if len(p.Body) <= copyBelow {
		p.Body = bytes.Clone(p.Body)
	}
	return p
}

func (p *Part) size() int { return partSize + len(p.Body) + len(p.Meta.Head) }

// parts are those that wait, the oldest first. The zero value is ready to use.
type parts struct {
	all  []Part // from head on
	head int
	size int // of all
}

// roomy is how many parts are kept room for while there are none.
const roomy = 64

func (p *parts) len() int { return len(p.all) - p.head }

// first returns the oldest one, of which there is one.
func (p *parts) first() *Part { return &p.all[p.head] }

// push adds a part, and returns its size.
func (p *parts) push(one Part) int {
	switch {
	case p.len() == 0:
		p.all, p.head = p.all[:0], 0
	case len(p.all) == cap(p.all) && p.head > len(p.all)/2:
		n := copy(p.all, p.all[p.head:])
		clear(p.all[n:])
		p.all, p.head = p.all[:n], 0
	}
	p.all = append(p.all, one)
	n := one.size()
	p.size += n
	return n
}

// pop takes the oldest one, of which there is one.
func (p *parts) pop() Part {
	one := p.all[p.head]
	p.all[p.head] = Part{}
	p.head++
	p.size -= one.size()
	if p.len() == 0 && cap(p.all) > roomy {
		p.all, p.head = nil, 0
	}
	return one
}
