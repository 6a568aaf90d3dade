package relay

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// transit is what a sender keeps of a message until its outcome is known. It
// is used again, so that a chunk costs no allocation here.
type transit struct {
	sender  *Sender
	lane    *lane
	key     streamKey
	stream  *stream // that the message belongs to; nil where none is open
	part    agora.Part
	n       uint64
	first   bool   // it begins the stream
	piece   bool   // see Options
	size    int    // bytes of the window that it holds
	awaits  bool   // a reply is waited for
	request string // under this id
	done    func(broker.Result)

	arrived func(broker.Result) // outcome, bound once
}

// transits hands out transits and takes them back.
type transits struct{ pool sync.Pool }

func (p *transits) get() *transit {
	if t, ok := p.pool.Get().(*transit); ok {
		return t
	}
	t := new(transit)
	t.arrived = t.outcome
	return t
}

// outcome settles the message and tells its sender, once for parts of a stream
// that are refused for good. t is nobody's afterwards.
func (t *transit) outcome(res broker.Result) {
	t.sender.window.give(t.size)
	if t.key.to.IsBox() && res.Err == nil {
		t.lane.peer.sent.Add(int64(t.size))
	}
	told := t.sender.answered(t.key, t.part, res.Err) || t.awaits && t.n == 0 && res.Err != nil && t.sender.late(t.key.to, t.request)
	if !told {
		t.sender.settle(t, res)
	}
	done, pool := t.done, &t.sender.relay.transits.pool
	*t = transit{arrived: t.arrived}
	pool.Put(t)
	if !told {
		done(res)
	}
}
