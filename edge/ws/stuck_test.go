package ws_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
)

// TestATakeoverDoesNotWaitForASocketThatTakesNothing lets an agent come back at another edge while its old socket
// is full of what it has not read. The old edge goes on trying to write to it for longer than the test lasts.
func TestATakeoverDoesNotWaitForASocketThatTakesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	c := agoratest.Start(t, agoratest.Options{
		Edges: 2, Grace: time.Minute, Door: ws.Config{Linger: time.Minute},
		Node: edge.Config{Lease: 20 * time.Second, Timeout: time.Minute},
	})
	for _, takeover := range []struct {
		about  string
		token  bool
		within time.Duration // a second for the incumbent's sign of life where there is no token, and a busy machine's time
	}{
		{"with its token", true, 1500 * time.Millisecond},
		{"without it", false, 2500 * time.Millisecond},
	} {
		t.Run(takeover.about, func(t *testing.T) {
			id := fmt.Sprintf("stuck-%v", takeover.token)
			old := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
			old.Send(fmt.Sprintf(`{"type":"agent.register","agent":{"id":%q}}`, id))
			token := old.Expect(`{"type":"agent.registered"}`).Text("resume_token")
			old.Narrow()
			old.Pause()
			sender := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=sender-"+id, nil)
			sender.Expect(`{"type":"agent.registered"}`)
			const messages = 10 // of which the system takes some
			for n := range messages {
				sender.Send(fmt.Sprintf(`{"type":"send","id":"m-%d","to":%q,"payload":{"n":%d,"body":"%s"}}`, n, id, n, strings.Repeat("x", 400<<10)))
				sender.Await(fmt.Sprintf(`{"type":"receipt","request_id":"m-%d"}`, n))
			}
			old.Until("the old socket takes nothing more", func() bool { return c.Node(0).Crowd().Held() > 400<<10 })
			query := "agent_id=" + id
			if takeover.token {
				query += "&resume_token=" + token
			}
			begun := time.Now()
			back := agoratest.Connect(t, agoratest.Direct{}, c.URL(1), query, nil)
			back.Expect(`{"type":"agent.registered","resumed":true}`)
			took := time.Since(begun)
			t.Logf("taken over within %v", took)
			if took > takeover.within {
				t.Errorf("the takeover took %v, want %v at most", took, takeover.within)
			}
			for n := range messages {
				back.Await(fmt.Sprintf(`{"type":"message","payload":{"n":%d,"body":"<any>"}}`, n))
			}
			old.Drop()
		})
	}
}
