package await

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAConditionIsWaitedForAndNoLongerThanSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !Within(time.Minute, func() bool { return time.Since(begin) >= time.Second }) {
			t.Error("a condition that holds after a second was not waited for")
		}
		if took := time.Since(begin); took >= 2*time.Second {
			t.Errorf("it was seen after %v, want right after a second", took)
		}
		if Within(time.Minute, func() bool { return false }) {
			t.Error("what never holds is said to hold")
		}
		if took := time.Since(begin); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("given up after %v, want after a minute more", took)
		}
	})
}

func TestAConditionIsAskedForOnceThoughThereIsNoTime(t *testing.T) {
	if !Within(0, func() bool { return true }) {
		t.Error("what holds at once is said not to")
	}
}

func TestPatienceIsLongUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	for set, want := range map[string]time.Duration{"": 2 * time.Minute, "x": 2 * time.Minute, "-1s": 2 * time.Minute, "3s": 3 * time.Second} {
		if got := long(set); got != want {
			t.Errorf("AGORA_TEST_PATIENCE=%q is %v, want %v", set, got, want)
		}
	}
}

func TestAValueIsReceivedAndAClosedChannelIsAnAnswer(t *testing.T) {
	c := make(chan int, 1)
	c <- 7
	if got := Recv(t, "a number", c); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
	close(c)
	if got := Recv(t, "the end", c); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}
