package client

import (
	"testing"
	"time"
)

// A machine that is gone says nothing. Its sessions are over once its lease and their grace are (edge.lease 10s,
// session.grace 30s): with the defaults an agent has noticed before, and has ten seconds left to be elsewhere.
func TestAnEdgeThatIsGoneIsNoticedWhileItsSessionsLast(t *testing.T) {
	l := link{heartbeat: defaultHeartbeat}
	if lasts := 40 * time.Second; l.patience() > lasts-10*time.Second {
		t.Errorf("a session lasts for %v, and its client waits for %v", lasts, l.patience())
	}
}
