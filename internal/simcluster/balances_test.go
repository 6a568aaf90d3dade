package simcluster

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
)

// settledIn is how long an agent stays at an edge before that moves it to another.
const settledIn = 20 * time.Second

// balances are edges that move agents to others, as they have more, or an operator says so. Who is told to go connects
// to the edge that has fewest.
type balances struct {
	w *world

	// Guarded by the world's mu.
	sent  map[*agent]time.Time // when those were told to go who have not been welcomed since
	last  map[*agent]time.Time // when each was told last
	asked bool                 // an operator has moved some
}

func newBalances(w *world) scene {
	return &balances{w: w, sent: map[*agent]time.Time{}, last: map[*agent]time.Time{}}
}

func (s *balances) usual() string { return "an operator has agents moved" }

func (s *balances) steps() map[string]func(*dice) {
	return map[string]func(*dice){
		"an operator has agents moved": func(d *dice) {
			e := s.w.anEdge(d)
			s.w.chatter(d, e)
			s.w.mu.Lock()
			s.asked = true
			s.w.mu.Unlock()
			s.w.say("%s is to move agents: %d", e.id, e.node.Balancer().MoveAtOnce(d.between(1, 3), d.between(1, 1000)))
		},
		"who is away comes back": func(*dice) { // the word to go elsewhere may be lost with the connection
			s.w.mu.Lock()
			var away []*agent
			for _, a := range s.w.agents {
				if a.d == nil {
					away = append(away, a)
				}
			}
			s.w.mu.Unlock()
			for _, a := range away {
				a.connect(s.fewest(), true, 0)
			}
		},
		"all come to one edge": func(*dice) {
			for _, a := range s.w.agents {
				a.connect(s.w.living()[0], true, 0)
			}
		},
	}
}

// sentOn implements traveller.
func (s *balances) sentOn(a *agent, d *door, _ *edge.Notice) {
	d.mu.Lock()
	bye := d.silent
	d.mu.Unlock()
	if bye {
		return
	}
	now := time.Now()
	if was, ok := s.last[a]; ok && !s.asked && now.Sub(was) < settledIn {
		s.w.failLocked("%s is moved again after %v", a.id, now.Sub(was))
	}
	s.sent[a], s.last[a] = now, now
	s.w.note("%s is told to leave %s", a.id, d.e.id)
	s.w.goes("somebody who was moved", func(context.Context) {
		s.w.mu.Lock()
		free := a.d == nil || a.d == d
		s.w.mu.Unlock()
		if free {
			a.connect(s.fewest(), true, 0)
		}
	})
}

// fewest returns the edge that has fewest agents.
func (s *balances) fewest() (least *node) {
	has := s.agents()
	for _, e := range s.w.living() {
		if least == nil || has[e] < has[least] {
			least = e
		}
	}
	return least
}

// agents returns how many agents have turned to each edge.
func (s *balances) agents() map[*node]int {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	has := map[*node]int{}
	for _, a := range s.w.agents {
		if a.d != nil {
			has[a.d.e]++
		}
	}
	return has
}

// welcomed implements traveller: the session of who was moved and is soon back continues.
func (s *balances) welcomed(a *agent, d *door, w *edge.Welcome) {
	at, was := s.sent[a]
	delete(s.sent, a)
	if was && d.hello.Resume != "" && !w.Resumed && time.Since(at) < grace/2 && !s.w.lax {
		s.w.failLocked("%s was moved, and its session is over %v later", a.id, time.Since(at))
	}
}

// missing implements scene: where no operator had a hand in it, edges that have more agents than the others have moved
// them.
func (s *balances) missing() string {
	has, all, most, n := s.agents(), 0, 0, len(s.w.living())
	for _, k := range has {
		all, most = all+k, max(most, k)
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.asked && most > 6 && most*n > all+n {
		return fmt.Sprintf("an edge has %d agents of %d", most, all)
	}
	return ""
}

// judge implements scene: it notes how many each edge has moved.
func (s *balances) judge() {
	for _, e := range s.w.living() {
		s.w.say("%s has moved %d", e.id, e.node.Balancer().Stats().Moved.Load())
	}
}

// TestAgentsOfAnEdgeThatHasMoreAreMovedAsTheyTalk has all agents at one edge of three, and lets some minutes pass in
// which they talk.
func TestAgentsOfAnEdgeThatHasMoreAreMovedAsTheyTalk(t *testing.T) {
	p := Plan{Seed: 1, Edges: 3, Agents: 24, Records: 4096, Tell: true, Logs: true, Scenes: []string{"balances"}}
	p.Steps = append(p.Steps, Step{Does: "all come to one edge", Then: settledIn})
	d := newDice(1)
	for k := range 400 {
		p.Steps = append(p.Steps, Step{Does: "speaks", Dice: d.Uint64(), Then: 200 * time.Millisecond})
		if k%3 == 0 {
			p.Steps = append(p.Steps, Step{Does: "who is away comes back"})
		}
	}
	r := playOnce(nil, p)
	story := strings.Join(r.Story, "\n")
	for _, f := range r.Failures {
		t.Error(f)
	}
	moved := map[string]int{}
	for _, m := range regexp.MustCompile(`(e\d) has moved (\d+)`).FindAllStringSubmatch(story, -1) {
		moved[m[1]], _ = strconv.Atoi(m[2])
	}
	if n := moved["e1"]; n < 14 || n > 18 {
		t.Errorf("the edge moved %d of its 24 agents, want about 16", n)
	}
	if n := moved["e2"] + moved["e3"]; n > 2 {
		t.Errorf("%d agents were moved on", n)
	}
	if t.Failed() {
		t.Log(story)
	}
}

// TestFewAgentsStayWhereTheyAre has fewer at one edge than an edge moves any of.
func TestFewAgentsStayWhereTheyAre(t *testing.T) {
	p := Plan{Seed: 2, Edges: 3, Agents: 5, Records: 4096, Tell: true, Scenes: []string{"balances"}}
	p.Steps = []Step{{Does: "all come to one edge", Then: 2 * time.Minute}}
	r := playOnce(nil, p)
	for _, f := range r.Failures {
		t.Error(f)
	}
	if story := strings.Join(r.Story, "\n"); strings.Count(story, " has moved 0") != 3 {
		t.Errorf("an agent was moved:\n%s", story)
	}
}

// TestHistoriesOfAgentsThatAreMoved plays histories in which all that happens elsewhere happens, and operators have
// agents moved.
func TestHistoriesOfAgentsThatAreMoved(t *testing.T) {
	n := uint64(8)
	if testing.Short() {
		n = 2
	}
	moved := 0
	for seed := range n {
		p := planOf(seed, []string{"balances"})
		p.Tell = true
		r := playOnce(nil, p)
		story := strings.Join(r.Story, "\n")
		if len(r.Failures) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, strings.Join(r.Failures, "\n"), story)
		}
		moved += len(regexp.MustCompile(`is to move agents: [1-9]`).FindAllString(story, -1))
	}
	if moved == 0 {
		t.Error("no agent was moved: the histories show nothing")
	}
}
