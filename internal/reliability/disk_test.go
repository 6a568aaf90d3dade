//go:build chaos

package reliability

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhenADiskIsFull leaves no room on the disk of the NATS node that leads the first stream.
func TestNothingIsLostWhenADiskIsFull(t *testing.T) {
	c := start(t, agoratest.ProcessOptions{Lease: lease, Disk: 256 << 20})
	t.Log(diskCell().run(t, c, 0, "", "").row())
}

// TestLookingAfterClaimsIsNeeded does without it when Sentinel fails over.
func TestLookingAfterClaimsIsNeeded(t *testing.T) {
	binary := agoratest.BuildAgora(t, "sabotage")
	c := start(t, agoratest.ProcessOptions{Lease: failoverLease, Binary: binary, Sentinel: true})
	need{sentinelCell().name, "look", `through a socket that it had left`}.plays(t, c, sentinelCell(), binary, 0)
}

// TestRetriesAreNeededWhenADiskIsFull does without them.
func TestRetriesAreNeededWhenADiskIsFull(t *testing.T) {
	binary := agoratest.BuildAgora(t, "sabotage")
	c := start(t, agoratest.ProcessOptions{Lease: lease, Binary: binary, Disk: 256 << 20})
	need{diskCell().name, "retry", `not normal`}.plays(t, c, diskCell(), binary, 0)
}

func diskCell() cell {
	return cell{name: "the disk of a NATS node is full", fault: diskFull, aborts: true}
}

func diskFull(s *stage) {
	k := s.leader()
	s.NATS.FillDisk(k)
	s.lasts(10 * time.Second)
	s.talk.Normal(15 * time.Second) // the others carry on; what is not sent again is given up after half a minute, and continues then, too
	s.NATS.Kill(k)
	s.NATS.Start(k) // on another disk, which is empty
	s.NATS.Ready()
}
