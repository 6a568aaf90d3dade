package edge_test

import (
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// grown is a cluster of one edge, with agents that talk to each other, to which two edges are added. Anyone who
// connects comes to the edge that has fewest agents.
type grown struct {
	*agoratest.Cluster
	talk *agoratest.Talk
}

func grow(t *testing.T, agents int, m edge.Moving) *grown {
	t.Helper()
	g := &grown{Cluster: agoratest.Start(t, agoratest.Options{Edges: 1, Grace: time.Hour, Node: edge.Config{Moving: m}})}
	var choosing sync.Mutex
	g.talk = agoratest.StartTalk(t, func() []string {
		choosing.Lock()
		defer choosing.Unlock()
		least := 0
		for k := range g.Size() {
			if g.agents(k) < g.agents(least) {
				least = k
			}
		}
		return []string{g.URL(least)}
	}, agoratest.TalkOptions{Agents: agents})
	g.AddEdge()
	g.AddEdge()
	return g
}

func (g *grown) agents(k int) int { return int(g.Node(k).Stats().Sessions) }

// moved returns how many agents all edges have moved.
func (g *grown) moved() (n int64) {
	for k := range g.Size() {
		n += g.Node(k).Balancer().Stats().Moved.Load()
	}
	return n
}

// looks waits until the first edge has looked some times more.
func (g *grown) looks(t *testing.T, n int64) {
	t.Helper()
	looks := &g.Node(0).Balancer().Stats().Looks
	from := looks.Load()
	await.True(t, "the edge looks", func() bool { return looks.Load() >= from+n })
}

// How even edges become, and that they then move nobody, is shown under fake time: see internal/simcluster.
func TestAgentsOfAnEdgeThatHasMoreAreMovedToOthers(t *testing.T) {
	t.Parallel()
	g := grow(t, 12, edge.Moving{Percent: 25, Every: 100 * time.Millisecond, Least: 5, Rest: 1})
	await.True(t, "the first edge has half of its agents at most", func() bool { return g.agents(0) <= 6 && g.agents(1) > 0 && g.agents(2) > 0 })
	if total, refused := g.talk.Settle(); total == 0 || refused > 0 {
		t.Errorf("of %d frames %d were refused", total, refused)
	}
}

func TestAnEdgeWithFewAgentsMovesNone(t *testing.T) {
	t.Parallel()
	g := grow(t, 6, edge.Moving{Percent: 100, Every: 10 * time.Millisecond, Rest: 1})
	g.looks(t, 10)
	if n := g.moved(); n > 0 || g.agents(0) != 6 {
		t.Errorf("%d agents were moved, and %d are left; want all 6 to stay, as they are fewer than a hundred", n, g.agents(0))
	}
}

func TestNoAgentIsMovedWhileAnEdgeCanNotServe(t *testing.T) {
	t.Parallel()
	g := grow(t, 12, edge.Moving{Percent: 10, Every: 200 * time.Millisecond, Least: 5, Rest: 1})
	g.CutLog(2)
	await.True(t, "the edge is missed", func() bool {
		_, err := g.Node(0).Balancer().Loads(t.Context())
		return err != nil
	})
	g.looks(t, 2) // what was chosen before is moved
	moved := g.moved()
	g.looks(t, 5)
	if n := g.moved(); n != moved {
		t.Errorf("%d agents were moved while an edge could not serve", n-moved)
	}
	g.MendEdge(2)
	await.True(t, "agents are moved again, or were even before", func() bool { return g.moved() > moved || g.agents(0) < 10 }) // of fewer, a tenth is none
	g.talk.Settle()
}

func TestAgentsThatHaveJustComeAreNotMoved(t *testing.T) {
	t.Parallel()
	g := grow(t, 6, edge.Moving{Percent: 100, Every: 10 * time.Millisecond, Least: 2, Rest: time.Hour})
	g.looks(t, 10)
	if n := g.moved(); n > 0 {
		t.Errorf("%d agents were moved, want none of those that have just come", n)
	}
}

func TestAnOperatorHasAgentsMovedAtOnce(t *testing.T) {
	t.Parallel()
	g := grow(t, 6, edge.Moving{})
	b := g.Node(1).Balancer()
	loads, err := b.Loads(t.Context())
	if err != nil || len(loads) != 3 || edge.Mean(loads) != 2 {
		t.Fatalf("Loads = %v, %v, want three of 2 in the mean", loads, err)
	}
	holder := g.Node(0).Holder()
	moves, err := g.Node(1).Inquiries().Move(t.Context(), holder, 4, 1000)
	if err != nil || moves != 4 {
		t.Fatalf("Move = %d, %v, want 4", moves, err)
	}
	await.True(t, "all edges have as many agents", func() bool { return g.agents(0) == 2 && g.agents(1)+g.agents(2) == 4 })
	if n := g.moved(); n != 4 {
		t.Errorf("%d agents were moved, want 4", n)
	}
	g.talk.Settle()
}
