package relay

import (
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
)

// numbers is what a sender knows of the numbers of its frames to one addressee.
type numbers struct {
	refused uint64        // lowest one that was refused for the moment and has not come again; 0 for none
	stored  uint64        // highest one known to be stored
	lane    agora.Address // into which the last one went, once some go into boxes
}

// Follows returns an error when a number is beyond one that was refused for
// the moment and has not come again, with the same message or another. The log
// does so for what reaches it; this is for what does not get so far.
func (s *Sender) Follows(to agora.Address, n uint64) error {
	if n == 0 || !guard.Order {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.numbers[to]
	if k == nil || k.refused == 0 {
		return nil
	}
	if n > k.refused && k.refused > k.stored {
		return &agora.Error{
			Code: agora.Unavailable, RetryAfter: time.Second,
			Message: fmt.Sprintf("number %d was refused and has not come again", k.refused),
		}
	}
	k.refused = 0
	return nil
}

// Refused notes that a numbered frame was refused before it came into its
// lane: for the moment, so that it must come again, or for good.
func (s *Sender) Refused(to agora.Address, n uint64, err error) {
	switch {
	case n == 0:
	case agora.AsError(err).Code != agora.Unavailable:
		s.pass(to, n)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		if k := s.counted(to); k.refused == 0 || n < k.refused {
			k.refused = n
		}
	}
}

// Used notes that a number went with what needs no place in a lane.
func (s *Sender) Used(to agora.Address, n uint64) { s.pass(to, n) }

// pass tells the lane, if there is one, that a number is used up.
func (s *Sender) pass(to agora.Address, n uint64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	l := s.lanes[to]
	s.mu.Unlock()
	if l != nil {
		l.Pass(n)
	}
}

// numbered notes that a number is stored: who was refused an earlier one sent it again for nothing.
func (s *Sender) numbered(to agora.Address, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.counted(to)
	k.stored = max(k.stored, n)
}

// counted returns the numbers of an addressee; mu is held.
func (s *Sender) counted(to agora.Address) *numbers {
	k := s.numbers[to]
	if k == nil {
		k = &numbers{}
		put(&s.numbers, to, k)
	}
	return k
}
