package admission

import (
	"math"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// party is the connections of one principal at an edge, as the Shedder has them.
type party struct {
	who  Owner
	shed atomic.Uint64 // its slots from this number on are shed
	n    int           // its slots; guarded by the shedder's mu
}

// Own says whose connection has the slot: with the others of its principal it is shed where that holds more than its
// share of what the edge holds. UNAVAILABLE where it is just that now. Nothing where nobody has asked who it is. It is
// called once, before the slot is used.
func (s *Slot) Own(o Owner) error {
	if s == nil || o.Principal == "" {
		return nil
	}
	o.Agent = ""
	of := s.shedder
	of.mu.Lock()
	defer of.mu.Unlock()
	p := of.parties[o]
	if p != nil && p.shed.Load() != math.MaxUint64 {
		of.count.Connections.Add(1)
		return errPartyFull
	}
	if p == nil {
		p = &party{who: o}
		p.shed.Store(math.MaxUint64)
		of.parties[o] = p
	}
	p.n++
	s.party = p
	return nil
}

// disown takes a slot from its party; the shedder's mu is held.
func (s *Slot) disown() {
	p := s.party
	if p == nil {
		return
	}
	if p.n--; p.n == 0 {
		delete(s.shedder.parties, p.who)
	}
}

// FullFor is [Shedder.Full] for what is asked in the name of an owner: it is UNAVAILABLE also while that holds more
// than its share.
func (s *Shedder) FullFor(o Owner) error {
	if err := s.Full(); err != nil || o.Principal == "" {
		return err
	}
	o.Agent = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parties[o]; p != nil && p.shed.Load() != math.MaxUint64 {
		return errPartyFull
	}
	return nil
}

// shedParties sheds the connections that came last of each principal that holds more than its share: the further beyond
// it, the more of them. Where it is passed by half they are closed, and no more of them than it takes.
func (s *Shedder) shedParties(over map[Owner]excess) {
	for _, at := range s.cutParties(over) {
		c := at.cut
		if c.frees <= 0 || at.conn == nil || at.slot.closed {
			continue
		}
		if held, _ := at.conn.Held(); held >= worthwhile {
			at.slot.closed = true
			s.count.Closed.Add(1)
			c.frees -= held
			at.conn.Shed()
		}
	}
}

// cut is what is to be shed of a party, and closed.
type cut struct {
	sheds  int64 // slots
	closes int64 // slots that may be closed at once
	frees  int64 // bytes that are to be freed by that
}

// cutSlot is a slot that may be closed.
type cutSlot struct {
	sampled
	cut *cut
}

// cutParties decides which slots are shed of principals that hold more than their share, and returns those that may be
// closed, the newest first.
func (s *Shedder) cutParties(over map[Owner]excess) (all []cutSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cuts := map[*party]*cut{}
	for who, p := range s.parties {
		x, is := over[who]
		if !is {
			p.shed.Store(math.MaxUint64)
			continue
		}
		n := min(max(int64(p.n)*(x.held-x.most)/max(x.most/2, 1), 1), int64(p.n))
		cuts[p] = &cut{sheds: n, closes: (n + 1) / 2, frees: x.held - x.most*3/2}
	}
	for slot, left := s.newest, len(cuts); slot != nil && left > 0; slot = slot.before {
		c := cuts[slot.party]
		if c == nil || c.sheds == 0 {
			continue
		}
		if c.sheds--; c.sheds == 0 {
			left--
			slot.party.shed.Store(slot.number)
		}
		if c.closes > 0 {
			c.closes--
			all = append(all, cutSlot{sampled{slot, slot.conn}, c})
		}
	}
	return all
}

// errPartyFull is told to a principal that holds more than its share.
var errPartyFull = &agora.Error{Code: agora.Unavailable, Message: "this principal holds as much at this edge as it may", RetryAfter: shedRetry}
