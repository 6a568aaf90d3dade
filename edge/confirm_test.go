package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// The unread part of a mailbox counts until a pong confirms it.
func TestAFastReaderThatNeverAcknowledgesIsNotTakenForASlowOne(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: 64, Confirm: time.Hour, Heartbeat: time.Hour, Timeout: 2 * time.Hour}})
	const messages = 160
	a, _ := registered(t, c, 0, "a")
	b, _ := registered(t, c, 1, "b")
	for k := range messages {
		a.Send(fmt.Sprintf(`{"type":"send","id":"%d","to":"b","payload":%d}`, k, k))
		a.Expect(fmt.Sprintf(`{"type":"receipt","request_id":"%d"}`, k))
		b.Expect(fmt.Sprintf(`{"type":"message","payload":%d}`, k))
		if k%8 == 7 {
			b.Barrier() // its edge has had the pongs before
		}
	}
	if n := b.Pings(); n < messages/64 || n > messages/8+2 {
		t.Errorf("%d pings for %d messages, want one for every eight at most, and for every 64 at least", n, messages)
	}
}
