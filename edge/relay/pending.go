package relay

import (
	"context"
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

// complete notes what became of a message and tells its asker: once for parts of a stream that are refused for
// good, and not where the asker of a request was told that its time is over. It runs on the broker's goroutine.
func (p *pendingSend) complete(res broker.Result) {
	p.sender.window.give(p.size)
	if res.Err == nil {
		p.stored(&res)
	} else if !p.refused(&res) {
		return
	}
	if p.key.to.IsBox() && (p.part != agora.Cancel || p.stream != nil) { // else it is the request's stream that is cancelled
		p.sender.boxed(p.key.to, p.part, res.Err)
	}
	if p.part != agora.Whole {
		p.settleStream(res.Err)
	}
	p.sent.Seq, p.sent.Again, p.sent.Err = res.Seq, res.Again, res.Err
	p.asker.Told(p.sent)
}

// stored notes that a message is stored.
func (p *pendingSend) stored(res *broker.Result) {
	s, l := p.sender, p.lane
	if p.key.to.IsBox() {
		l.peer.sent.Add(int64(p.size))
	}
	if !res.Again && res.Seq>>agora.SeqShift != l.last {
		l.last = res.Seq >> agora.SeqShift
		l.peer.stored()
	}
	if p.sent.N > 0 {
		s.mu.Lock()
		s.numbers.stored(p.key.to.Peer(), p.sent.N)
		s.mu.Unlock()
	}
}

// refused notes that a message was refused in its lane, and reports whether that is news.
func (p *pendingSend) refused(res *broker.Result) bool {
	s, k := p.sender, p.key
	forNow := agora.AsError(res.Err).Code == agora.Unavailable
	// It is none where a part before it was refused permanently: many may be under way when the first is. A cancel is
	// always answered: nothing else tells its sender that the stream is over.
	if !forNow && p.part != agora.Start && p.part != agora.Cancel && s.dropped(k, p.part, p.sent.N) {
		return false
	}
	if p.awaits && p.sent.N == 0 && s.late(k.to, p.request) {
		return false
	}
	if forNow {
		s.heldBack(k.to, res)
		if p.silences {
			s.speaks(k)
		}
	}
	if p.awaits {
		s.replied(k.to, p.request) // it is answered: nothing is waited for
	}
	return true
}

// settleStream notes what the outcome of a part means for its stream.
func (p *pendingSend) settleStream(err error) {
	s, k, st := p.sender, p.key, p.stream
	failed := err != nil
	if failed && !p.part.Ends() && !p.piece {
		s.refuse(k, p.part, p.sent.N, err)
	}
	if p.part == agora.End {
		s.mu.Lock()
		if failed {
			s.past.unanswer(streamKey{k.to.Peer(), k.stream})
		} else {
			s.past.at(k).ended = true
		}
		s.mu.Unlock()
	}
	switch {
	case failed && !p.first && st != nil && agora.AsError(err).Code == agora.InvalidRequest:
		// The part was refused, the stream is open in the log still, and nothing
		// of it is taken any more: its receiver must not wait for the rest.
		s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
	case failed || p.part.Ends():
		s.end(k, st, err)
	}
}

// heldBack notes that a number was refused for the moment in its lane: the lane holds back what comes behind it there,
// this what goes into others.
func (s *Sender) heldBack(to agora.Address, res *broker.Result) {
	if res.N == 0 || to.IsSpace() {
		return
	}
	s.mu.Lock()
	mixed := s.boxes != nil
	s.mu.Unlock()
	if mixed {
		s.refused(&agora.Message{To: to, N: res.N}, res.Err)
	}
}

// window bounds the bytes that one sender has under way. Anyone who takes more
// than is left waits; the socket is not read meanwhile, so TCP pushes back.
type window struct {
	size int

	mu    sync.Mutex // guards the fields below
	used  int
	freed chan struct{} // closed and renewed when bytes are given back to somebody who waits; nil when nobody does
}

// take blocks until n bytes fit, or one message too large for the window is alone in it.
func (w *window) take(ctx context.Context, n int) error {
	for {
		w.mu.Lock()
		if w.used == 0 || w.used+n <= w.size {
			w.used += n
			w.mu.Unlock()
			return nil
		}
		if w.freed == nil {
			w.freed = make(chan struct{})
		}
		freed := w.freed
		w.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give returns n bytes. It never blocks.
func (w *window) give(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= n
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// held returns the bytes that are under way.
func (w *window) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}
