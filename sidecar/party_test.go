package sidecar_test

import (
	"slices"
	"testing"

	"github.com/agora-relay/agora/internal/party"
)

// TestParties plays sidecars among each other and against the WebSocket, whose client they have; other doors stand
// behind the core for both.
func TestParties(t *testing.T) {
	t.Parallel()
	others := func(p party.Pair) bool {
		known := func(d party.Door) bool { return d.Name == "sidecar" || d.Name == "ws" }
		return !known(p.Sender) || !known(p.Receiver)
	}
	party.Play(t, slices.DeleteFunc(party.Pairs(party.Sidecar()), others))
}
