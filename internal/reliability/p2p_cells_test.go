package reliability

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// p2pCell is one failure while peers of libp2p talk through circuits. Those that are called have reserved a place at
// edge 0, and their callers come by each of the three.
type p2pCell struct {
	name   string
	fault  func(*p2pStage)
	calm   bool // no circuit breaks
	always bool // played without chaos, too
}

var p2pCells = []p2pCell{
	{name: "the edge of who is called is killed", fault: func(s *p2pStage) { s.Edges[0].Kill() }, always: true},
	{name: "the edge of callers is killed", fault: func(s *p2pStage) { s.Edges[1].Kill() }},
	{name: "an edge drains", fault: func(s *p2pStage) { s.Edges[0].Drain() }},
	{name: "an edge is frozen past its lease, and thawed", fault: func(s *p2pStage) {
		s.Edges[0].Freeze()
		s.progressOf(1, s.through(1, 2))
		s.Edges[0].Thaw()
	}},
	{name: "all of NATS is down", fault: func(s *p2pStage) {
		for k := range s.NATS.Nodes {
			s.NATS.Kill(k)
		}
		s.progress(20)
	}, calm: true},
	{name: "Redis is restarted, empty", fault: func(s *p2pStage) {
		s.Redis.Stop()
		s.progress(20)
		s.Redis.Start()
	}, calm: true, always: true},
}

// TestCircuitsNeverEndShortWhateverDies breaks a part of a cluster while peers say numbers to each other through
// circuits: each number comes back once and in its order, a circuit that is lost is reset and not ended, and who dials
// again through another edge gets through.
func TestCircuitsNeverEndShortWhateverDies(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	least := min(lease, doomed)
	c := start(t, agoratest.ProcessOptions{Lease: lease, Leases: []time.Duration{least, least}})
	cells := slices.DeleteFunc(slices.Clone(p2pCells), func(x p2pCell) bool { return !chaos && !x.always })
	for _, x := range slices.Repeat(cells, rounds) {
		t.Run(x.name, func(t *testing.T) { x.run(t, c) })
		c.Under(t)
	}
}

// run plays a cell.
func (x p2pCell) run(t *testing.T, c *agoratest.Processes) {
	c.Under(t)
	c.Heal()
	s := startP2P(t, c)
	defer s.end()
	s.progress(5)
	broken := s.broken.Load()
	x.fault(s)
	s.progress(20)
	if n := s.broken.Load() - broken; x.calm && n > 0 {
		t.Errorf("%d circuits broke, want none", n)
	}
	c.Heal()
	s.progress(20)
}
