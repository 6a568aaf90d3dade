//go:build chaos

package serve

import (
	"testing"
	"time"
)

// TestTimedWhoHasCredentialsIsServedSoon fills every place with what is unfinished, and has everybody with credentials
// served within two seconds.
func TestTimedWhoHasCredentialsIsServedSoon(t *testing.T) {
	e := guarded(t)
	e.serves(t, "nobody else is there") // by a peer that stays
	for _, u := range unfinishedThings() {
		t.Run(u.port+": "+u.about, func(t *testing.T) { // whose connections are closed at its end
			many := 1000
			if u.about == "silence" {
				many = 4096 + 100
			}
			e.crowd(t, u, many)
			if slowest := e.serves(t, u.about); slowest > 2*time.Second {
				t.Errorf("the slowest waited for %v, want 2s at most", slowest)
			}
		})
	}
}
