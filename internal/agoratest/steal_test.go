package agoratest

import "testing"

func TestWhatAHostTakesOfTheProcessorsIsSeen(t *testing.T) {
	before := parseSteal([]byte("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n"))
	if want := (Steal{stolen: 35, total: 1000}); before != want {
		t.Errorf("read %+v, want %+v", before, want)
	}
	if got := before.share(parseSteal([]byte("cpu  150 0 50 830 10 0 5 55 9 0"))); got != 0.2 {
		t.Errorf("a share of %v was stolen, want 0.2", got)
	}
	if got := parseSteal(nil).share(parseSteal([]byte("cpu"))); got != 0 {
		t.Errorf("a share of %v was stolen where nothing is known, want none", got)
	}
}
