package simcluster

import "testing"

// gluttons are a scene of no history but one that shows that a history may take so much memory and no more.
type gluttons struct{ eaten [][]byte }

func newGluttons(*world) scene { return new(gluttons) }

func (g *gluttons) usual() string   { return "" }
func (g *gluttons) missing() string { return "" }
func (g *gluttons) judge()          {}

func (g *gluttons) steps() map[string]func(*dice) {
	return map[string]func(*dice){"eats": func(*dice) {
		for range 4 << 10 {
			g.eaten = append(g.eaten, make([]byte, 1<<20))
		}
	}}
}

// TestAStoryWithoutAnEndFails tells a story that is longer than any is.
func TestAStoryWithoutAnEndFails(t *testing.T) {
	w := new(world)
	for range mostNotes + 1000 {
		w.say("and so on")
	}
	if !w.failed() || len(w.failures) != 1 || len(w.notes) > mostNotes+1 {
		t.Errorf("%d lines are kept, and what fails is %q", len(w.notes), w.failures)
	}
}
