//go:build chaos

package serve

import (
	"testing"
	"time"
)

// TestTimedWhoHasCredentialsIsServedSoon fills every place with what is unfinished, and has everybody with credentials served within two seconds.
func TestTimedWhoHasCredentialsIsServedSoon(t *testing.T) {
	e := guarded(t)
	at := e.portAddresses()
	for _, u := range unfinishedThings() {
		many := 1000
		if u.about == "silence" {
			many = 4096 + 100
		}
		u.crowd(t, at[u.port], many)
		if slowest := e.serves(t, u.port+": "+u.about); slowest > 2*time.Second {
			t.Errorf("%s: %s: the slowest waited for %v, want 2s", u.port, u.about, slowest)
		}
	}
}
