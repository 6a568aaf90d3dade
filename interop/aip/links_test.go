//go:build interop

package aip

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

func TestNodesOfForeignGatewaysAreListedAndCalled(t *testing.T) {
	programs := []program{nodeProgram(t), pythonProgram(t)}
	peers := map[string]string{}
	var links []string
	for _, p := range programs { // that in Node tells of its nodes, that in Python has to be asked
		address, tag := p.isGateway(t)
		peers[p.language], links = tag, append(links, address)
	}
	c := start(t, "--aip.link", strings.Join(links, ","))
	for language, peer := range peers {
		for _, edge := range c.GRPC {
			await.True(t, edge+" lists the nodes in "+language, func() bool { return lists(t, edge, "agent-"+peer) && lists(t, edge, "toolbox-"+peer) })
		}
		for _, p := range programs {
			t.Run(p.language+" to "+language, func(t *testing.T) {
				t.Parallel()
				p.plays(await.Context(t), t, peer, c.GRPC, "talk", "turns", "large", "tools", "giveUp")
			})
		}
	}
}

// lists reports whether an edge lists a node, at its own address.
func lists(t *testing.T, edge, id string) bool {
	t.Helper()
	me, err := aip.NewAgent(aip.Config{ID: "caller", Gateways: []string{edge}})
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	if err := me.UpdatePeers(await.Context(t), ""); err != nil {
		t.Fatal(err)
	}
	p := me.Nodes()[id]
	return p != nil && (p.GetAgentInfo().GetAddress() == edge || p.GetToolboxInfo().GetAddress() == edge)
}
