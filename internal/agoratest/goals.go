package agoratest

import (
	"fmt"
	"iter"
	"slices"
)

// goal is how far a line is to come.
type goal struct {
	what  string
	now   func() uint64
	least uint64
}

// lacking says which goals are not reached.
func lacking(goals []goal) (behind []string) {
	for _, g := range goals {
		if now := g.now(); now < g.least {
			behind = append(behind, fmt.Sprintf("%s: %d, want %d", g.what, now, g.least))
		}
	}
	slices.Sort(behind)
	return behind
}

// sent are all that talkers send to; the lock of each is held meanwhile.
func (t *Talk) sent() iter.Seq2[*talker, *outgoing] {
	return func(yield func(*talker, *outgoing) bool) {
		for _, k := range t.talkers {
			for _, o := range k.out {
				k.mu.Lock()
				more := yield(k, o)
				k.mu.Unlock()
				if !more {
					return
				}
			}
		}
	}
}

// heard are all that talkers get, but for what begins or ends at those named.
func (t *Talk) heard(but ...int) iter.Seq[*incoming] {
	return func(yield func(*incoming) bool) {
		for i, k := range t.talkers {
			for _, in := range k.in {
				if !slices.Contains(but, i) && !slices.Contains(but, in.from) && !yield(in) {
					return
				}
			}
		}
	}
}

// further is n more of everything stored, and arrived.
func (t *Talk) further(n uint64) (goals []goal) {
	for _, o := range t.sent() {
		goals = append(goals, goal{o.line.Name() + ", stored", o.line.Settled, o.line.Settled() + n})
	}
	for in := range t.heard() {
		goals = append(goals, goal{in.track.Name(), in.track.Last, in.track.Last() + n})
	}
	return goals
}

// beyond is that all arrives that was handed out, and n more, but for what begins or ends at those named.
func (t *Talk) beyond(n uint64, but ...int) (goals []goal) {
	for in := range t.heard(but...) {
		goals = append(goals, goal{in.track.Name(), in.track.Last, in.track.Line().Wanted() + n})
	}
	return goals
}

// missing says what was sent and is not there.
func (t *Talk) missing() []string {
	goals := t.beyond(0)
	for _, o := range t.sent() {
		goals = append(goals, goal{o.line.Name() + ", stored", o.line.Settled, o.line.Made()})
	}
	return lacking(goals)
}

// refusals returns the last error that each sender got about each addressee.
func (t *Talk) refusals() (all []string) {
	for k, o := range t.sent() {
		if stored, made := o.line.Settled(), o.line.Made(); o.refusal != "" && stored < made {
			all = append(all, fmt.Sprintf("%s to %q, stored %d, sent %d of %d: %s", k.id, o.to, stored, o.next-1, made, o.refusal))
		}
	}
	return all
}
