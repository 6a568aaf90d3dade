package broker

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func TestAStreamTakesNothingWhileAllIsRefused(t *testing.T) {
	ago := func(d time.Duration) int64 { return agora.Ticks() - int64(d) }
	for _, c := range []struct {
		about       string
		since, last time.Duration
		want        bool
	}{
		{"refused just now", 0, 0, false},
		{"refused for as long as an election may last", takesNothingAfter, 0, true},
		{"refused, and nothing sent for long", time.Hour, takesNothingFor, false},
		{"refused, and sent again", time.Hour, time.Second, true},
	} {
		var s takes
		s.refused()
		s.since.Store(ago(c.since))
		s.last.Store(ago(c.last))
		if got := s.nothing(); got != c.want {
			t.Errorf("%s: %v, want %v", c.about, got, c.want)
		}
		if s.forget(); s.nothing() {
			t.Errorf("%s: it takes nothing under another leader", c.about)
		}
		s.refused()
		if s.stored(); s.nothing() || s.since.Load() != 0 {
			t.Errorf("%s: it takes nothing though a record was stored", c.about)
		}
	}
}
