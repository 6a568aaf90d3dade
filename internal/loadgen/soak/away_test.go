package soak

import (
	"errors"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
)

func TestTheLongestTimeWithoutAConnectionCounts(t *testing.T) {
	t.Parallel()
	a := away{since: map[string]time.Time{}}
	lost, back := client.Status{Err: errors.New("connection reset")}, client.Status{}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	check := func(now int, want time.Duration) {
		t.Helper()
		if got := a.most(at(now)); got != want {
			t.Errorf("after %d s: most = %v, want %v", now, got, want)
		}
	}
	a.status("alice", back, at(0))
	check(1, 0)
	a.status("alice", lost, at(2))
	a.status("bob", lost, at(3))
	a.status("alice", lost, at(4)) // tried in vain
	check(5, 3*time.Second)
	a.status("alice", back, at(9))
	check(9, 7*time.Second)
	a.status("bob", back, at(9))
	check(20, 7*time.Second)
}
