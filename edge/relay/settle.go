package relay

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// answered tells whether the outcome of a part is no news: it is refused for
// good, and so was one before it. Many may be under way when the first is. A cancel is always answered: nothing else tells
// its sender that the stream is over.
func (s *Sender) answered(k streamKey, part agora.Part, n uint64, err error) bool {
	if err == nil || part == agora.Start || part == agora.Cancel || agora.AsError(err).Code == agora.Unavailable {
		return false
	}
	return s.dropped(k, part, n)
}

// settle takes note of what became of a message.
func (s *Sender) settle(p *pendingSend, res broker.Result) {
	l, k, st := p.lane, p.key, p.stream
	if res.Err == nil && !res.Again && res.Seq>>agora.SeqShift != l.last {
		l.last = res.Seq >> agora.SeqShift
		l.peer.stored()
	}
	if res.Err == nil && p.sent.N > 0 {
		s.mu.Lock()
		s.numbers.stored(k.to.Peer(), p.sent.N)
		s.mu.Unlock()
	}
	failed := res.Err != nil
	if failed && agora.AsError(res.Err).Code == agora.Unavailable {
		s.heldBack(k.to, res)
		if p.silences {
			s.speaks(k)
		}
	}
	if k.to.IsBox() && (p.part != agora.Cancel || st != nil) { // else it is the request's stream that is cancelled
		s.boxed(k.to, p.part, res.Err)
	}
	if p.awaits && failed {
		s.Replied(k.to, p.request) // it is answered: nothing is waited for
	}
	if p.part == agora.Whole {
		return
	}
	if failed && !p.part.Ends() && !p.piece {
		s.refuse(k, p.part, p.sent.N, res.Err)
	}
	if p.part == agora.End {
		s.mu.Lock()
		if failed {
			s.past.concluded.remove(streamKey{k.to.Peer(), k.stream})
		} else {
			s.past.ended.add(k)
		}
		s.mu.Unlock()
	}
	switch {
	case failed && !p.first && st != nil && agora.AsError(res.Err).Code == agora.InvalidRequest:
		// The part was refused, the stream is open in the log still, and nothing
		// of it is taken any more: its receiver must not wait for the rest.
		s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
	case failed || p.part.Ends():
		s.end(k, st, res.Err)
	}
}

// heldBack notes that a number was refused for the moment in its lane: the lane holds back what comes behind it there, this what goes into others.
func (s *Sender) heldBack(to agora.Address, res broker.Result) {
	if res.N == 0 || to.IsSpace() || res.Err == nil {
		return
	}
	s.mu.Lock()
	mixed := s.boxes != nil
	s.mu.Unlock()
	if mixed {
		s.refused(&agora.Message{To: to, N: res.N}, res.Err)
	}
}
