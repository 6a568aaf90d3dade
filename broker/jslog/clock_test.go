package jslog

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

func TestAClockThatIsSetMovesNothing(t *testing.T) {
	c := Clock{log: slog.New(slog.DiscardHandler)}
	set := time.Now()
	c.local = func() time.Time { return set }
	now := time.Now()
	c.Hear("S", Sample{Sent: now, Got: now, Log: now})
	before := c.Now()
	set = set.Add(24 * time.Hour)
	if moved := c.Now().Sub(before); moved < 0 || moved > time.Minute {
		t.Errorf("set by a day, the log's time moved by %v", moved)
	}
	if d := c.Skew(); d < 23*time.Hour {
		t.Errorf("skew %v, want a day", d)
	}
}

func TestOneServerWithAWrongClockMovesNothing(t *testing.T) {
	now := time.Now()
	c := Clock{local: time.Now, log: slog.New(slog.DiscardHandler)}
	for range 2 {
		for k, d := range []time.Duration{time.Hour, 0, 0} {
			c.Hear(fmt.Sprint(k), Sample{Sent: now, Got: now, Log: now.Add(d)})
		}
	}
	if d := time.Until(c.Now()).Abs(); d > time.Minute {
		t.Errorf("%v off the two that agree", d)
	}
	before := c.Now()
	c.Hear("1", Sample{Sent: now.Add(-10 * time.Second), Got: now, Log: now.Add(time.Hour)})
	if d := c.Now().Sub(before); d > time.Minute {
		t.Errorf("an answer that took ten seconds moved the time by %v", d)
	}
}
