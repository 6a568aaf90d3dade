package simcluster

import (
	"strings"

	"github.com/agora-relay/agora"
)

// deliveries are receipts of what was written to a socket of its receiver, or was taken by its reader.
type deliveries struct{ w *world }

func newDeliveries(w *world) scene { return &deliveries{w} }

func (s *deliveries) usual() string { return "" }

func (s *deliveries) steps() map[string]func(*dice) { return nil }

// missing implements scene: nothing is waited for.
func (s *deliveries) missing() string { return "" }

// heard implements listener: what is said to be delivered is written to a socket of its receiver, or taken by its
// reader.
func (s *deliveries) heard(a *agent, m *agora.Message) {
	r, err := m.ReceiptBody()
	if m.Kind != agora.Receipt || err != nil || r.Tier != agora.Delivered {
		return
	}
	if r.Session != "" && !strings.HasPrefix(a.token, r.Session+".") {
		s.w.failLocked("%s: %+v is told to it, though the number is of another session", a.id, r)
	}
	to := agora.ToAgent(m.To.Tenant, m.From)
	for _, p := range s.w.parts[1:] {
		if p.from == a && p.lane.to == to && (r.N > 0 && p.n == r.N || r.ID != "" && p.id == r.ID) && (p.written || s.w.arrived[p.uid]) {
			return
		}
	}
	if !s.w.scenes.received(a, m.From, &r) {
		s.w.failLocked("%s: %+v is said to have been delivered to %s, and nobody there was given it", a.id, r, m.From)
	}
}

// judge implements scene: what agents got is everybody's.
func (s *deliveries) judge() {}
