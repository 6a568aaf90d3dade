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

// numbering is what a sender knows of the numbers of its frames, by addressee. The lock of its laneSet guards it.
type numbering map[agora.Address]*numbers

// of returns the numbers of an addressee.
func (n *numbering) of(to agora.Address) *numbers {
	k := (*n)[to]
	if k == nil {
		k = &numbers{}
		put((*map[agora.Address]*numbers)(n), to, k)
	}
	return k
}

// follows returns an error where a number is beyond one that is waited for. Else that is waited for no more.
func (n numbering) follows(to agora.Address, number uint64) error {
	k := n[to]
	if k == nil || k.refused == 0 {
		return nil
	}
	if number > k.refused && k.refused > k.stored {
		return &agora.Error{
			Code: agora.Unavailable, RetryAfter: time.Second,
			Message: fmt.Sprintf("number %d was refused and has not come again", k.refused),
		}
	}
	k.refused = 0
	return nil
}

// refused notes that a number was refused for the moment.
func (n *numbering) refused(to agora.Address, number uint64) {
	if k := n.of(to); k.refused == 0 || number < k.refused {
		k.refused = number
	}
}

// stored notes that a number is stored: who was refused an earlier one sent it again for nothing.
func (n *numbering) stored(to agora.Address, number uint64) {
	k := n.of(to)
	k.stored = max(k.stored, number)
}

// awaited reports whether a number is waited for that was refused for the moment.
func (n numbering) awaited(to agora.Address) bool {
	k := n[to]
	return k != nil && k.refused != 0
}

// moves reports whether a number for a peer goes into another lane than the one before it.
func (n numbering) moves(to agora.Address) bool {
	k := n[to.Peer()]
	return k == nil || k.lane != to
}

// into notes into which lane the next number for a peer goes, and returns that of the one before it.
func (n *numbering) into(to agora.Address) (before agora.Address) {
	k := n.of(to.Peer())
	if before = k.lane; before == (agora.Address{}) {
		before = to.Peer()
	}
	k.lane = to
	return before
}

// Follows returns an error when a number is beyond one that was refused for
// the moment and has not come again, with the same message or another. The log
// does so for what reaches it; this is for what does not get so far.
func (s *laneSet) Follows(to agora.Address, n uint64) error {
	if n == 0 || !guard.Order {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers.follows(to, n)
}

// Refused notes that a numbered frame was refused before it came into its
// lane: for the moment, so that it must come again, or for good.
func (s *laneSet) Refused(to agora.Address, n uint64, err error) {
	switch {
	case n == 0:
	case agora.AsError(err).Code != agora.Unavailable:
		s.pass(to, n)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.numbers.refused(to, n)
	}
}

// Undecided returns the answer to a numbered frame that is to be refused before it comes into its lane. It is refused for the
// moment only while the lane holds one with its number, which may be stored, or have to come again: refused for
// good the number would be used up, and the lane would wait for it in vain.
func (s *laneSet) Undecided(to agora.Address, n uint64, err error) error {
	if n == 0 || agora.AsError(err).Code == agora.Unavailable {
		return err
	}
	s.mu.Lock()
	l := s.lanes[to]
	s.mu.Unlock()
	if l == nil || !l.Holds(n) {
		return err
	}
	return &agora.Error{
		Code: agora.Unavailable, RetryAfter: time.Second, Cause: err,
		Message: fmt.Sprintf("number %d is being stored, and can't be answered yet", n),
	}
}

// Used notes that a number went with what needs no place in a lane.
func (s *laneSet) Used(to agora.Address, n uint64) { s.pass(to, n) }
