package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	ops "github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/await"
)

func TestAnOperatorHasAllEdgesHaveAsManyAgents(t *testing.T) {
	t.Parallel()
	args := backends(t)
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	for k := range 4 {
		connect(t, fmt.Sprintf("%s?agent_id=agent-%d", one.public, k)).hear("agent.registered")
	}
	var planned ops.Rebalancing
	two.ask(&planned, "rebalance", "--plan")
	if planned.Mean != 2 || len(planned.Edges) != 2 || above(planned) != 2 || moves(planned) != 0 {
		t.Errorf("the plan is %+v, want 2 of 4 at an edge to be moved, and none that is", planned)
	}
	out, status := two.operate("rebalance", "--rate", "1000")
	if status != 0 || !strings.Contains(out, "agents that are being moved: 2\n") {
		t.Errorf("agora rebalance ended with %d: %s", status, out)
	}
	await.True(t, "two agents have been told to go", func() bool {
		var now ops.Rebalancing
		two.ask(&now, "rebalance", "--plan")
		return now.Edges[0].Agents+now.Edges[1].Agents == 2
	})
	out, status = two.operate("rebalance", "--rate", "0")
	if status != exit.Usage || !strings.Contains(out, "--rate must be at least 1") {
		t.Errorf("agora rebalance --rate 0 ended with %d: %s", status, out)
	}
}

func above(r ops.Rebalancing) (n int) {
	for _, e := range r.Edges {
		n += e.Above
	}
	return n
}

func moves(r ops.Rebalancing) (n int) {
	for _, e := range r.Edges {
		n += e.Moves
	}
	return n
}
