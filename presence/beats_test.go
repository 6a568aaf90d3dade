package presence

import "testing"

func TestARollbackShowsInTheRenewalThatTheServerHas(t *testing.T) {
	for about, c := range map[string]struct {
		do   func(*beats)
		want uint64
	}{
		"the first":            {func(b *beats) { b.sent("a"); b.answered(held("of another life"), "a") }, 0},
		"one behind the other": {func(b *beats) { b.sent("a"); b.answered(held(""), "a"); b.sent("b"); b.answered(held("a"), "b") }, 0},
		"asked again":          {func(b *beats) { b.sent("a"); b.answered(held(""), "a"); b.sent("b"); b.answered(held("b"), "b") }, 0},
		"one without an answer": {func(b *beats) {
			b.sent("a")
			b.answered(held(""), "a")
			b.sent("b")
			b.sent("c")
			b.answered(held("b"), "c")
		}, 0},
		"one that has not arrived": {func(b *beats) {
			b.sent("a")
			b.answered(held(""), "a")
			b.sent("b")
			b.sent("c")
			b.answered(held("a"), "c")
		}, 0},
		"two at once": {func(b *beats) {
			b.sent("a")
			b.answered(held(""), "a")
			b.sent("b")
			b.sent("c")
			b.answered(held("a"), "c")
			b.answered(held("c"), "b")
			b.sent("d")
			b.answered(held("b"), "d")
		}, 0},
		"another life has the lease": {func(b *beats) {
			renewals(b, "ab")
			b.sent("c")
			b.answered(reply{[]any{int64(2), "incarnation"}}, "c")
		}, 0},
		"no lease":      {func(b *beats) { renewals(b, "ab"); b.sent("c"); b.answered(reply{[]any{int64(0), ""}}, "c") }, 0},
		"an older copy": {func(b *beats) { renewals(b, "abcd"); b.sent("e"); b.answered(held("b"), "e") }, 1},
		"nothing of it": {func(b *beats) { renewals(b, "abcd"); b.sent("e"); b.answered(held(""), "e") }, 1},
		"told once": {func(b *beats) {
			renewals(b, "abcd")
			b.sent("e")
			b.answered(held("b"), "e")
			b.sent("f")
			b.answered(held("e"), "f")
		}, 1},
		"more than can be remembered": {func(b *beats) {
			renewals(b, "abcd")
			for range mostBeats + 3 {
				b.sent("x")
			}
			b.sent("y")
			b.answered(held("x"), "y")
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
		b.answered(held(before), string(w))
		before = string(w)
	}
}

// held is the answer of a server that had a renewal before.
func held(before string) reply { return reply{[]any{int64(1), before}} }
