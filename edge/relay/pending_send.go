package relay

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Asker hears what became of a message, on a goroutine that must not be blocked.
type Asker interface{ Told(Sent) }

// AskerFunc is a function as an Asker.
type AskerFunc func(Sent)

// Told calls the function.
func (f AskerFunc) Told(t Sent) { f(t) }

// Sent is what became of a message.
type Sent struct {
	To       agora.Address  // its addressee, also where it is an answer that went into a box
	Stream   string         // its own, as the next three
	N        uint64         //
	Index    uint32         //
	Indexed  bool           //
	Frame    string         // as of its Options, as the next
	Receipts agora.Receipts //
	Seq      uint64         // where it is stored; for a duplicate where the first one is, 0 where that is no longer known
	Again    bool           // it was there before: nothing was stored
	Err      error          // an *agora.Error; nil when it is stored
}

// pendingSend is what is kept of a message until its asker can be told what became of it. It
// is used again, so that a message costs no allocation here.
type pendingSend struct {
	sender   *Sender
	asker    Asker
	lane     *lane
	key      streamKey
	stream   *stream // that the message belongs to; nil where none is open
	part     agora.Part
	sent     Sent   // what its asker is told, but for what became of it
	first    bool   // it begins the stream
	silences bool   // it is a cancel by which what comes of the stream is dropped, as it was not before
	piece    bool   // see Options
	awaits   bool   // a reply is waited for
	request  string // under this id, where one is
	size     int    // bytes of the window that it holds

	done func(broker.Result) // completes it and gives it back, bound once
}

// pendingSends hands them out and takes them back.
type pendingSends struct{ pool sync.Pool }

func (s *pendingSends) get() *pendingSend {
	if p, ok := s.pool.Get().(*pendingSend); ok {
		return p
	}
	p := new(pendingSend)
	p.done = func(res broker.Result) {
		pool := &p.sender.relay.pending.pool
		p.complete(res)
		*p = pendingSend{done: p.done}
		pool.Put(p)
	}
	return p
}

// complete takes note of what became of a message and tells its asker: once for parts of a stream that are refused for good, and not where the asker of a request
// was told that its time is over. It runs on the broker's goroutine.
func (p *pendingSend) complete(res broker.Result) {
	s := p.sender
	s.window.give(p.size)
	if p.key.to.IsBox() && res.Err == nil {
		p.lane.peer.sent.Add(int64(p.size))
	}
	if s.answered(p.key, p.part, p.sent.N, res.Err) || p.awaits && p.sent.N == 0 && res.Err != nil && s.late(p.key.to, p.request) {
		return
	}
	s.settle(p, res)
	p.sent.Seq, p.sent.Again, p.sent.Err = res.Seq, res.Again, res.Err
	p.asker.Told(p.sent)
}
