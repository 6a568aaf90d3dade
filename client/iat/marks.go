package iat

import (
	"slices"
	"sync"
)

// marks are the positions of a mailbox that a program was given and is not done with. Its methods may be called at the
// same time.
type marks struct {
	mu     sync.Mutex // guards the fields below
	low    uint64     // up to it all is done
	told   uint64     // position that the edge of this connection was told
	passed uint64     // up to it this connection gives nothing any more
	open   []mark     // that were given and are not done, or that this connection may give again, by position
}

// mark is the position of an envelope that was given.
type mark struct {
	seq  uint64
	id   string
	done bool
}

// maxMarks bounds what is kept in mind: beyond it the oldest counts as done.
const maxMarks = 1 << 16

// begin says after which position delivery begins, where nothing was given yet.
func (m *marks) begin(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.low == 0 && len(m.open) == 0 {
		m.low = seq
	}
}

// position returns the position after which delivery is to go on; false where none is known.
func (m *marks) position() (uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.low, m.low > 0 || len(m.open) > 0
}

// connected notes the position that the edge of a new connection was told: it gives again what stands behind it, be
// that done by now.
func (m *marks) connected(told uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told, m.passed = told, told
}

// given notes that an envelope was given, and returns false where it was before. An edge gives nothing up to the
// position that it was told: what is there nevertheless stands in a mailbox that began again.
func (m *marks) given(seq uint64, id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq <= m.told {
		m.open = slices.DeleteFunc(m.open, func(k mark) bool { return k.done }) // is said of a mailbox that is no more
	}
	m.passed = max(m.passed, seq)
	defer m.advance()
	i, there := m.find(seq)
	if there {
		return m.open[i].id != id
	}
	m.open = slices.Insert(m.open, i, mark{seq: seq, id: id})
	if len(m.open) > maxMarks {
		m.low = m.open[0].seq
		m.open = slices.Delete(m.open, 0, 1)
	}
	return true
}

// done notes that the program is done with an envelope.
func (m *marks) done(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, there := m.find(seq); there {
		m.open[i].done = true
		m.advance()
	}
}

// find returns where a position is, or would be. mu is held, as in advance.
func (m *marks) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(m.open, seq, func(k mark, seq uint64) int {
		switch {
		case k.seq < seq:
			return -1
		case k.seq > seq:
			return 1
		}
		return 0
	})
}

// advance forgets what is done and is not given again.
func (m *marks) advance() {
	done, over := 0, 0
	for done < len(m.open) && m.open[done].done {
		m.low = m.open[done].seq
		if m.open[done].seq <= m.passed {
			over = done + 1
		}
		done++
	}
	m.open = slices.Delete(m.open, 0, over)
}
