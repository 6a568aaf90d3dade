package simcluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// scene is a part of a history that keeps what it knows in values of its own: what agents and others do besides writing
// to each other.
type scene interface {
	// steps are what may happen. They are asked for before the history begins, too.
	steps() map[string]func(*dice)
	// usual names the step that happens more often than others; empty for none.
	usual() string
	// missing says, once all faults have ended, what is still under way or is not as it has to be soon; empty for
	// nothing.
	missing() string
	// judge looks, when all is over, at what has to be so.
	judge()
}

// listener is a scene that hears what agents get. The world's mu is held.
type listener interface {
	heard(a *agent, m *agora.Message)
}

// traveller is a scene that hears of the connections of agents. The world's mu is held.
type traveller interface {
	sentOn(a *agent, d *door, n *edge.Notice) // told to leave an edge
	welcomed(a *agent, d *door, w *edge.Welcome)
}

// receiver is a scene that knows of what was received otherwise than by agents. The world's mu is held.
type receiver interface {
	received(from *agent, by agora.AgentID, r *agora.ReceiptBody) bool
}

// scenes are the scenes of one history, and what they have going on.
type scenes struct {
	all  []scene
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex // guards the fields below
	under   map[string]int
	settled time.Time // when all faults had ended
}

// repertoire is which scenes there are, by which a plan names them.
var repertoire = map[string]func(*world) scene{
	"calls":     newCalls,
	"uploads":   newUploads,
	"lates":     newLates,
	"acts":      newActs,
	"dialled":   newDialled,
	"approvals": newApprovals,
	"directory": newDirectory,
	"drains":    newDrains,
	"clocks":    newClocks,
	"tails":     newTails,
	"failovers": newFailovers,
	"readers":   newReaders,
	"trials":    newTrials,
	"receipts":  newDeliveries,
	"gluttons":  newGluttons,
	"overflows": newOverflows,
	"balances":  newBalances, // in histories of its own: see TestHistoriesOfAgentsThatAreMoved
}

// programmes are what takes part in the history of a seed, in turn: few at a time, so that histories stay short.
var programmes = [...][]string{
	{"trials", "receipts"}, {"calls"}, {"acts"}, {"tails"}, {"dialled"}, {"approvals"}, {"drains"}, {"dialled", "drains"}, {"acts", "dialled"}, {"failovers"},
	{"calls", "directory"}, {"calls", "approvals"}, {"clocks"}, {"readers"}, {"drains", "tails", "overflows"}, {"readers", "drains", "receipts"},
	{"uploads"}, {"lates", "overflows"}, {"uploads", "lates", "drains"},
}

// programme returns what takes part in the history of a seed. Seeds differ by three in what else is drawn of them.
func programme(seed uint64) []string { return programmes[seed/3%uint64(len(programmes))] }

// newScenes returns the scenes of a plan.
func newScenes(w *world) *scenes {
	s := &scenes{under: map[string]int{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for _, name := range w.plan.Scenes {
		s.all = append(s.all, repertoire[name](w))
	}
	return s
}

// steps returns the steps of all scenes, and the usual ones.
func (s *scenes) steps() (all map[string]func(*dice), usual []string) {
	all = map[string]func(*dice){}
	for _, x := range s.all {
		maps.Copy(all, x.steps())
		if u := x.usual(); u != "" {
			usual = append(usual, u)
		}
	}
	return all, usual
}

// goes does something of a scene beside the history. It has to end soon once the scenes' ctx is over.
func (w *world) goes(what string, do func(ctx context.Context)) {
	s := w.scenes
	s.mu.Lock()
	s.under[what]++
	s.mu.Unlock()
	w.running.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.under[what]--; s.under[what] == 0 {
				delete(s.under, what)
			}
		}()
		do(s.ctx)
	})
}

// goingOn names what continues beside the history; empty for nothing.
func (s *scenes) goingOn() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.under)) {
		return name
	}
	return ""
}

// missing says what of all scenes is missing; empty for nothing.
func (s *scenes) missing() string {
	if s.since() == 0 {
		s.mu.Lock()
		s.settled = time.Now()
		s.mu.Unlock()
	}
	for _, x := range s.all {
		if miss := x.missing(); miss != "" {
			return miss
		}
	}
	if on := s.goingOn(); on != "" {
		return on + " goes on"
	}
	return ""
}

// since returns how long ago all faults have ended; 0 while they go on.
func (s *scenes) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled.IsZero() {
		return 0
	}
	return time.Since(s.settled)
}

func (s *scenes) judge() {
	for _, x := range s.all {
		x.judge()
	}
}

// heard tells scenes what an agent gets for the first time. The world's mu is held.
func (s *scenes) heard(a *agent, m *agora.Message) {
	for _, x := range s.all {
		if l, is := x.(listener); is {
			l.heard(a, m)
		}
	}
}

// sentOn tells scenes that an agent is told to leave an edge. The world's mu is held.
func (s *scenes) sentOn(a *agent, d *door, n *edge.Notice) {
	for _, x := range s.all {
		if t, is := x.(traveller); is {
			t.sentOn(a, d, n)
		}
	}
}

// welcomed tells scenes that an agent is welcomed. The world's mu is held.
func (s *scenes) welcomed(a *agent, d *door, w *edge.Welcome) {
	for _, x := range s.all {
		if t, is := x.(traveller); is {
			t.welcomed(a, d, w)
		}
	}
}

// received reports whether a scene knows that what a receipt names was received. The world's mu is held.
func (s *scenes) received(from *agent, by agora.AgentID, r *agora.ReceiptBody) bool {
	for _, x := range s.all {
		if y, is := x.(receiver); is && y.received(from, by, r) {
			return true
		}
	}
	return false
}

// at returns a context that ends with an edge's connections to the one who uses it, and with the scenes.
func (e *node) at(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// rest waits a while; false where the scenes are over before.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
