package ws_test

import (
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	agoratest.RunDoorSuite(t, agoratest.Direct{})
}
