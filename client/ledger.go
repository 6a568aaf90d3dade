package client

// ledger tells up to which position all that came has been dealt with,
// although it is dealt with in any order. Its owner's lock guards it.
type ledger struct {
	base    uint64 // ticket of entries[0]
	entries []entry
	done    uint64 // position up to which everything is done with
	told    uint64 // position that was acknowledged last
	fresh   int    // frames done with since then
}

type entry struct {
	seq  uint64
	done bool
}

// add enters a frame and returns its ticket.
func (l *ledger) add(seq uint64) uint64 {
	l.entries = append(l.entries, entry{seq: seq})
	return l.base + uint64(len(l.entries)) - 1
}

// finish says that the frame with the ticket is done with. Saying it again changes nothing.
func (l *ledger) finish(ticket uint64) {
	if ticket < l.base {
		return
	}
	l.entries[ticket-l.base].done = true
	for len(l.entries) > 0 && l.entries[0].done {
		l.done = max(l.done, l.entries[0].seq)
		l.entries = l.entries[1:]
		l.base++
		l.fresh++
	}
}

// due returns the position to acknowledge, if there is a new one.
func (l *ledger) due() (seq uint64, ok bool) {
	l.fresh = 0
	if l.done <= l.told {
		return 0, false
	}
	l.told = l.done
	return l.done, true
}
