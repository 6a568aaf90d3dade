package ws

import "testing"

// Every state of the writer beside a pull, with and without a pull that waits: one is called at a time, and only for a pull.
func TestOneWriterIsCalledBesideAPull(t *testing.T) {
	for state := besideNone; state <= besideWrites; state++ {
		for _, pull := range []bool{false, true} {
			b := beside{state: state, pull: pull}
			calls := b.call()
			if want := pull && state == besideNone; calls != want || b.news != pull {
				t.Errorf("%v, a pull waits %t: a writer is called %t, and hears of news %t; want %t, %t", state, pull, calls, b.news, want, pull)
			}
			if calls && b.state != besideCalled || !calls && b.state != state {
				t.Errorf("%v, a pull waits %t: then it is %v", state, pull, b.state)
			}
			b = beside{state: state, pull: pull}
			came := b.comes()
			want := state
			if state == besideCalled {
				if want = besideNone; pull {
					want = besideWrites
				}
			}
			if came != (state == besideCalled) || b.state != want {
				t.Errorf("%v, a pull waits %t: a writer that comes writes beside %t, and is %v; want %v", state, pull, came, b.state, want)
			}
		}
	}
}
