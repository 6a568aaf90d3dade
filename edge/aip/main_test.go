package aip_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/internal/party"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParties(t *testing.T) {
	t.Parallel()
	party.Play(t, party.Pairs(party.AIP()))
}
