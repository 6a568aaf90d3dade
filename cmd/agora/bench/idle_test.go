package bench

import "testing"

func TestBenchIdleSaysWhenTooFewFilesMayBeOpened(t *testing.T) {
	for _, c := range []struct {
		agents, processes int
		embedded, enough  bool
	}{{1000, 1, false, false}, {1000, 2, false, true}, {900, 1, false, true}, {1000, 2, true, false}, {400, 1, true, true}} {
		var o idleOptions
		o.Agents, o.processes, o.embedded = c.agents, c.processes, c.embedded
		if err := o.enough(1000); (err == nil) != c.enough {
			t.Errorf("%+v with 1000 files: %v", c, err)
		}
	}
}
