package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
)

// nextLanes is how many lanes NextNumbers looks at: each is fenced, and the log is read for it.
const nextLanes = 16

// NextNumbers returns, for a session that continues, the number behind the highest that its agent has used towards each
// addressee; those with open streams come first, at most 16 in all. It blocks for as long as the log takes, and leaves
// out what is not known when ctx is over. For a Sender that has sent nothing yet.
func (s *Sender) NextNumbers(ctx context.Context) map[agora.Address]uint64 {
	s.mu.Lock()
	var all []agora.Address
	for to, open := range s.used {
		switch {
		case to.IsBox():
		case len(open) > 0:
			all = slices.Insert(all, 0, to)
		default:
			all = append(all, to)
		}
	}
	s.mu.Unlock()
	all = all[:min(len(all), nextLanes)]
	next := make([]uint64, len(all))
	var reading sync.WaitGroup
	for i, to := range all {
		reading.Go(func() {
			l := s.lane(to)
			defer s.release(l)
			next[i], _ = l.Next(ctx) // 0 where it is not known
		})
	}
	reading.Wait()
	known := map[agora.Address]uint64{}
	for i, to := range all {
		if next[i] != 0 {
			known[to] = next[i]
		}
	}
	return known
}

// numbers is what a sender knows of the numbers of its frames to one addressee.
type numbers struct {
	refused uint64        // lowest one that was refused for the moment and has not come again; 0 for none
	limited bool          // it was refused as there is too much, with nothing amiss in its lane
	beyond  uint64        // the first one that was refused because of a limited one; 0 for none
	missed  []missedPart  // the first part of each stream that was refused because of a limited one
	stored  uint64        // highest one known to be stored
	lane    agora.Address // into which the last one went, once some go into boxes
}

// missedPart is a part of a stream, which lacks nothing if the part comes again under its number or a lower one.
type missedPart struct {
	n      uint64
	stream string
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

// follows returns an error where a number is beyond one that is waited for. Else that is waited for no more, and
// follows returns the streams that lack a part permanently.
//
// A client that takes RATE_LIMITED for the end of its number does not say it again. The first number beyond it tells:
// where that comes a second time its sender has heard of both refusals, and the refused one is passed over.
func (n numbering) follows(to agora.Address, number uint64, stream string, part agora.Part) (lack []string, err error) {
	k := n[to]
	if k == nil {
		return nil, nil
	}
	if k.refused != 0 && number > k.refused && k.refused > k.stored && (!k.limited || number != k.beyond) {
		if k.limited {
			k.miss(number, stream, part)
		}
		return nil, &agora.Error{
			Code: agora.Unavailable, RetryAfter: time.Second, Cause: errEarly,
			Message: fmt.Sprintf("number %d was refused and has not come again", k.refused),
		}
	}
	k.refused, k.beyond = 0, 0
	k.missed = slices.DeleteFunc(k.missed, func(m missedPart) bool {
		switch {
		case m.stream == stream && number <= m.n: // lower where its sender has taken back what stood before it
		case m.n <= number:
			lack = append(lack, m.stream)
		default:
			return false
		}
		return true
	})
	return lack, nil
}

// miss notes what was refused because of a limited number.
func (k *numbers) miss(number uint64, stream string, part agora.Part) {
	if k.beyond == 0 {
		k.beyond = number
	}
	if part != agora.Chunk && part != agora.End || len(k.missed) >= remembered {
		return
	}
	if at := slices.IndexFunc(k.missed, func(m missedPart) bool { return m.stream == stream }); at < 0 {
		k.missed = append(k.missed, missedPart{number, stream})
	} else {
		k.missed[at].n = min(k.missed[at].n, number)
	}
}

// refused notes that a number was refused for the moment; limited says that there is too much, and nothing amiss in its
// lane.
func (n *numbering) refused(to agora.Address, number uint64, limited bool) {
	if k := n.of(to); k.refused == 0 || number < k.refused {
		k.refused, k.limited, k.beyond = number, limited, 0
	}
}

// misses reports whether a stream lacks a part that is expected under its number.
func (n numbering) misses(to agora.Address, stream string) bool {
	k := n[to]
	return k != nil && slices.ContainsFunc(k.missed, func(m missedPart) bool { return m.stream == stream })
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

// errEarly is the cause of an answer to a number that is beyond one that was refused for the moment: what has it is
// expected again under it.
var errEarly = errors.New("an earlier number is waited for")

// InTurn returns an error when the number of a message is beyond one to the same addressee that was refused for the
// moment and has not come again, with the same message or another. The log does so for what reaches it; this is for
// what does not get so far. The answer is for [Sender.Refuse].
func (s *Sender) InTurn(m *agora.Message) error {
	if m.N == 0 || !guard.Order {
		return nil
	}
	to := m.To.Peer()
	s.mu.Lock()
	lack, err := s.numbers.follows(to, m.N, m.Stream, m.Part)
	s.mu.Unlock()
	for _, name := range lack { // its sender continues without the part
		s.Broken(to, name, 0, agora.Errorf(agora.StreamAborted, "a part of the stream did not come again"))
	}
	return err
}
