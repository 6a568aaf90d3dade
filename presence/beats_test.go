package presence

import "testing"

func TestARollbackShowsInTheRenewalThatTheServerHas(t *testing.T) {
	for about, c := range map[string]struct {
		do   func(*beats)
		want uint64
	}{
		"the first":                {func(b *beats) { b.sent("a"); b.answered("of another life", "a") }, 0},
		"one behind the other":     {func(b *beats) { b.sent("a"); b.answered("", "a"); b.sent("b"); b.answered("a", "b") }, 0},
		"asked again":              {func(b *beats) { b.sent("a"); b.answered("", "a"); b.sent("b"); b.answered("b", "b") }, 0},
		"one without an answer":    {func(b *beats) { b.sent("a"); b.answered("", "a"); b.sent("b"); b.sent("c"); b.answered("b", "c") }, 0},
		"one that has not arrived": {func(b *beats) { b.sent("a"); b.answered("", "a"); b.sent("b"); b.sent("c"); b.answered("a", "c") }, 0},
		"two at once": {func(b *beats) {
			b.sent("a")
			b.answered("", "a")
			b.sent("b")
			b.sent("c")
			b.answered("a", "c")
			b.answered("c", "b")
			b.sent("d")
			b.answered("b", "d")
		}, 0},
		"an older copy": {func(b *beats) { renewals(b, "abcd"); b.sent("e"); b.answered("b", "e") }, 1},
		"nothing of it": {func(b *beats) { renewals(b, "abcd"); b.sent("e"); b.answered("", "e") }, 1},
		"told once": {func(b *beats) {
			renewals(b, "abcd")
			b.sent("e")
			b.answered("b", "e")
			b.sent("f")
			b.answered("e", "f")
		}, 1},
		"more than can be remembered": {func(b *beats) {
			renewals(b, "abcd")
			for range mostBeats + 3 {
				b.sent("x")
			}
			b.sent("y")
			b.answered("x", "y")
		}, 0},
	} {
		t.Run(about, func(t *testing.T) {
			var b beats
			if c.do(&b); b.rollbacks.Load() != c.want {
				t.Errorf("%d rollbacks, want %d", b.rollbacks.Load(), c.want)
			}
		})
	}
}

// renewals has each of some words sent and answered.
func renewals(b *beats, words string) {
	before := ""
	for _, w := range words {
		b.sent(string(w))
		b.answered(before, string(w))
		before = string(w)
	}
}
