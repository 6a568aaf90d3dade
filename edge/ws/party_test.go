package ws_test

import (
	"testing"

	"github.com/agora-relay/agora/internal/party"
)

func TestParty(t *testing.T) {
	t.Parallel()
	party.Play(t, party.Pairs(party.WebSocket()))
}
