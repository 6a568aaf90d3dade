package ownership

import (
	"slices"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Arrival is a connection that is about to become a session. A probe that
// comes meanwhile finds none yet, and must not take it for dead.
type Arrival struct {
	among *arrivals
	at    agora.Address
	asked bool   // its claim is under way: it may hold any epoch; guarded by among.mu, like the next
	epoch uint64 // that it holds; 0 for none
	past  uint64 // another holder was told that nothing from before this epoch is left here; 0 for none
}

// arrivals are those of an edge. The zero value is ready to use.
type arrivals struct {
	mu  sync.Mutex // guards the field below
	all map[agora.Address][]*Arrival
}

func (r *arrivals) arrive(at agora.Address) *Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[agora.Address][]*Arrival{}
	}
	a := &Arrival{among: r, at: at}
	r.all[at] = append(r.all[at], a)
	return a
}

// any reports whether a connection is about to become a session.
func (r *arrivals) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all) > 0
}

// mayHold reports whether a connection that may hold an epoch is about to become a session.
func (r *arrivals) mayHold(at agora.Address, epoch uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.all[at], func(a *Arrival) bool { return a.asked || a.epoch == epoch })
}

// supersede notes that another holder learns that nothing of an agent from before an epoch is left here.
func (r *arrivals) supersede(at agora.Address, before uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.all[at] {
		a.past = max(a.past, before)
	}
}

// Superseded reports whether another holder was told that nothing of the agent's from before a younger claim is left
// here, as there was no session yet. It is asked once that can be found: then it must give its agent nothing.
func (a *Arrival) Superseded() bool {
	a.among.mu.Lock()
	defer a.among.mu.Unlock()
	return a.epoch < a.past
}

func (a *Arrival) claimSent() {
	a.among.mu.Lock()
	defer a.among.mu.Unlock()
	a.asked = true
}

func (a *Arrival) claimAnswered(c presence.Claim, err error) {
	a.among.mu.Lock()
	defer a.among.mu.Unlock()
	a.asked = false
	if err == nil {
		a.epoch = c.Epoch
	}
}

// Done says that the connection has become a session, or will not.
func (a *Arrival) Done() {
	r := a.among
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.all[a.at], func(other *Arrival) bool { return other == a })
	if len(left) == 0 {
		delete(r.all, a.at)
		return
	}
	r.all[a.at] = left
}
