//go:build chaos

package reliability

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhenADiskIsFull leaves no room on the disk of the NATS node that leads the first stream.
func TestNothingIsLostWhenADiskIsFull(t *testing.T) {
	c := agoratest.StartProcesses(t, agoratest.ProcessOptions{Lease: lease, Disk: 256 << 20})
	x := cell{name: "the disk of a NATS node is full", fault: diskFull, normal: 30 * time.Second, aborts: true}
	t.Log(x.run(t, c, 0, "").row())
}

func diskFull(s *stage) {
	k := s.leader()
	s.NATS.FillDisk(k)
	s.lasts(10 * time.Second)
	s.talk.Normal(20 * time.Second) // the others carry on
	s.NATS.Kill(k)
	s.NATS.Start(k) // on another disk, which is empty
	s.NATS.Ready()
}
