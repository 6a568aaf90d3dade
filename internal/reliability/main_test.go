package reliability

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler)) // it says of each connection to a Redis that is down that there is none
	goleak.VerifyTestMain(m)
}
