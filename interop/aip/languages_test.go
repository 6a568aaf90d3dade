//go:build interop

package aip

import (
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// registry are scenes with nodes of the program's own, calls those with nodes of another one.
var (
	registry = []string{"register", "failing", "updates"}
	calls    = []string{"talk", "turns", "large", "refusals", "statuses", "giveUp", "tools"}
)

func TestProgramsOfAnyLanguageAreNodes(t *testing.T) {
	c := start(t)
	for _, p := range []program{nodeProgram(t), pythonProgram(t)} {
		for _, scene := range registry {
			t.Run(p.language+" "+scene, func(t *testing.T) {
				t.Parallel()
				p.plays(await.Context(t), t, "", c.GRPC, scene)
			})
		}
	}
}

func TestProgramsInTheStyleOfTheProtocolsLibraryAreNodes(t *testing.T) {
	c := start(t)
	pythonProgram(t).plays(await.Context(t), t, "", c.GRPC, "library")
}

func TestNodesOfAnyLanguageCallEachOther(t *testing.T) {
	c := start(t)
	programs := []program{nodeProgram(t), pythonProgram(t)}
	peers := map[string]string{"go": servesGo(t, c.GRPC)}
	for _, p := range programs {
		peers[p.language] = p.serves(t, c.GRPC)
	}
	for callee, peer := range peers {
		for _, p := range programs {
			t.Run(p.language+" to "+callee, func(t *testing.T) {
				t.Parallel()
				p.plays(await.Context(t), t, peer, c.GRPC, calls...)
			})
		}
		t.Run("go to "+callee, func(t *testing.T) {
			t.Parallel()
			callsGo(t, peer, c.GRPC)
		})
	}
}
