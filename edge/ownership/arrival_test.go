package ownership

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// nobody holds no session.
type nobody struct{}

func (nobody) All() []Session                     { return nil }
func (nobody) Of(agora.Address, uint64) []Session { return nil }
func (nobody) Agents() int                        { return 0 }

// A younger holder that was told that there is nothing here delivers from then on: a connection whose claim is older
// must not begin a session behind that.
func TestAnArrivalIsTooLateOnceItsAgentWasHandedOver(t *testing.T) {
	at, other := agora.ToAgent("t", "a"), agora.ToAgent("t", "b")
	for _, step := range []struct {
		name   string
		at     agora.Address
		epoch  uint64
		before bool // its claim is answered before the hand-over
		late   bool
	}{
		{"claimed before", at, 1, true, true},
		{"its claim under way, an older one", at, 1, false, true},
		{"its claim under way, a younger one", at, 3, false, false},
		{"the one that asks", at, 2, true, false},
		{"of another agent", other, 1, true, false},
	} {
		o := New(Config{Sessions: nobody{}})
		a := o.Arrive(step.at)
		a.claimSent()
		if step.before {
			a.claimAnswered(presence.Claim{Epoch: step.epoch}, nil)
		}
		if done, clean := o.HandOver(t.Context(), at, 2); !done || !clean {
			t.Errorf("%s: handed over %t, cleanly %t, though there is nothing", step.name, done, clean)
		}
		if !step.before {
			a.claimAnswered(presence.Claim{Epoch: step.epoch}, nil)
		}
		if late := a.Superseded(); late != step.late {
			t.Errorf("%s: superseded %t, want %t", step.name, late, step.late)
		}
		a.Done()
	}
}
