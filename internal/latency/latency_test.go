package latency

import (
	"testing"
	"time"
)

func TestEachDurationIsCountedInItsBucket(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-time.Second, time.Millisecond, time.Millisecond + 1, time.Hour} {
		h.Observe(d)
	}
	s := h.Read()
	if s.Count != 4 {
		t.Errorf("count = %d, want 4", s.Count)
	}
	for k, want := range map[int]uint64{0: 1, 1: 1, 2: 2, 3: 3, len(Bounds) - 1: 3} {
		if s.Below[k] != want {
			t.Errorf("up to %v: %d, want %d", Bounds[k], s.Below[k], want)
		}
	}
	if want := time.Hour + 2*time.Millisecond + 1; s.Sum != want {
		t.Errorf("sum = %v, want %v", s.Sum, want)
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Second) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
