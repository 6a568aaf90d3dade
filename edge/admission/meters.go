package admission

import (
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// meter counts what an agent says against its rates.
type meter struct {
	buckets
	allowance allowance   // of what it says at all edges together
	forgotten atomic.Bool // another one counts from now on
}

// full reports whether a meter is as a new one would be.
func (m *meter) full() bool {
	now := agora.Ticks()
	return m.messages.full.Load() <= now && m.bytes.full.Load() <= now
}

// meters are those of what is said by requests, by the agents or principals that say it: what each of them says in many
// requests counts together.
type meters struct {
	mu   sync.Mutex // guards the fields below
	of   map[agora.Address]*meter
	most int // meters before those that count nothing any more are forgotten
}

// leastMeters is how many meters are kept whatever they count.
const leastMeters = 1024

// refill makes every bucket full.
func (m *meters) refill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.of {
		known.refill()
	}
}

// get returns an agent's meter.
func (m *meters) get(at agora.Address) *meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.of[at]; known != nil {
		return known
	}
	if len(m.of) >= max(m.most, leastMeters) {
		for a, old := range m.of {
			if old.full() {
				old.forgotten.Store(true)
				delete(m.of, a)
			}
		}
		m.most = 2 * len(m.of)
	}
	fresh := new(meter)
	if m.of == nil {
		m.of = map[agora.Address]*meter{}
	}
	m.of[at] = fresh
	return fresh
}
