package reliability

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// lease is that of the edges.
const lease = 3 * time.Second

// TestNothingIsLostWhateverDies breaks one part of a cluster after the other while agents talk.
func TestNothingIsLostWhateverDies(t *testing.T) {
	c := agoratest.StartProcesses(t, agoratest.ProcessOptions{Lease: lease})
	for n, x := range cells(testing.Short()) {
		t.Run(x.name, func(t *testing.T) { x.run(t, c, n) })
		c.Under(t)
	}
}

func cells(short bool) []cell {
	all := []cell{
		{name: "an edge is killed", fault: edgeKilled, caught: 2*time.Second + lease},
		{name: "an edge is frozen past its lease, and thawed", fault: edgeFrozen, talk: agoratest.TalkOptions{Silence: 2 * time.Second}},
		{name: "an edge is drained", fault: edgeDrained, told: []string{"agent.reconnect", "close 1012"}},
		{name: "sockets are cut", fault: socketsCut},
		{name: "an agent reads nothing, past its time", fault: socketStalled},
		{name: "an agent's network goes, and it comes back by another", fault: socketAbandoned},
		{name: "agents reconnect in a loop", fault: reconnectLoop},
		{name: "the leaders of all streams step down", fault: stepDown, calm: true},
		{name: "a NATS node is killed", fault: natsKilled, calm: true},
	}
	if short {
		return all[:3]
	}
	return all
}

func edgeKilled(s *stage) { s.Edges[0].Kill() }

func edgeFrozen(s *stage) {
	s.Edges[0].Freeze()
	s.lasts(2 * lease)
	s.Edges[0].Thaw()
}

func edgeDrained(s *stage) { s.Edges[0].Drain() }

func socketsCut(s *stage) {
	for i := range 6 {
		s.talk.Kick(i)
	}
}

func socketStalled(s *stage) {
	s.but = []int{0}
	s.talk.Stall(0, true)
	s.lasts(8 * time.Second) // session.timeout is 6 s
	s.talk.Normal(5*time.Second, 0)
	s.talk.Stall(0, false)
}

func socketAbandoned(s *stage) { s.talk.Abandon(0) }

func reconnectLoop(s *stage) {
	s.but = []int{0, 3}
	s.talk.Spin(0, true)
	s.talk.Spin(3, true)
	s.lasts(5 * time.Second)
	s.talk.Spin(0, false)
	s.talk.Spin(3, false)
}

func stepDown(s *stage) {
	for _, stream := range s.NATS.Streams() {
		s.NATS.StepDown(stream)
	}
}

func natsKilled(s *stage) { s.NATS.Kill(s.leader()) }

// leader returns the node that leads the first stream.
func (s *stage) leader() int {
	s.t.Helper()
	k := s.NATS.Leader(s.NATS.Streams()[0])
	if k < 0 {
		s.t.Fatal("the first stream has no leader")
	}
	return k
}
