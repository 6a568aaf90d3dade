package deliver

import "testing"

// Every event in every stage, as a drawing of who is at an outbox: its writer, which may wait within a pull, and
// another one beside that.
func TestAStageSaysWhoWrites(t *testing.T) {
	type who struct{ called, main, pulls, besideCalled, beside bool }
	is := map[stage]who{
		quiet: {}, called: {called: true}, writes: {main: true}, pulls: {main: true, pulls: true},
		pullsCalled: {main: true, pulls: true, besideCalled: true}, pullsBeside: {main: true, pulls: true, beside: true},
		pulledBeside: {main: true, beside: true},
	}
	for s := range stage(len(next)) {
		for e := range nEvents {
			was, want := is[s], is[s]
			switch {
			case e == queued && was == who{}:
				want.called = true
			case e == queued && was.pulls && !was.beside:
				want.besideCalled = true
			case e == comes && was.called:
				want = who{main: true}
			case e == comes && was.besideCalled:
				want.besideCalled, want.beside = false, true
			case e == waits && was == who{main: true}:
				want.pulls = true
			case e == pulled && was.main: // one that was called comes late
				want.pulls, want.besideCalled = false, false
			case e == besides && was.beside:
				want.beside = false
			case e == goesOn && was == who{main: true}:
				want = who{called: true}
			case e == ends && was == who{main: true}:
				want = who{}
			}
			if got := is[next[s][e]]; got != want {
				t.Errorf("%v, event %d: then it is %v, which is %+v, want %+v", s, e, next[s][e], got, want)
			}
		}
	}
}
