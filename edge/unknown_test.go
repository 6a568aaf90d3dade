package edge_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestAnAgentThatNobodyKnowsIsNotFoundInTheSameWords(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	const told = `{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","to":"agent-9"}`
	a, _ := registered(t, c, 0, "agent-1")
	a.Send(`{"type":"send","to":"agent-9","payload":1}`, `{"type":"reply","to":"agent-9","payload":1}`)
	a.Expect(told, told)
	ctx := await.Context(t)
	_, inspected := operator.New(c.Node(0)).InspectAgent(ctx, "", "agent-9")
	_, purged := operator.New(c.Node(0)).Purge(ctx, "", "agent-9")
	for verb, err := range map[string]error{"kick": operator.New(c.Node(0)).Kick(ctx, "", "agent-9"), "inspect": inspected, "purge": purged} {
		if e := agora.AsError(err); e.Code != agora.AgentNotFound || e.Message != "Agent 'agent-9' does not exist" {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
