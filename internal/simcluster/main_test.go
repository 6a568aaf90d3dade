package simcluster

import (
	"log/slog"
	"os"
	"runtime"
	"testing"

	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0
	presence.LogClient(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
