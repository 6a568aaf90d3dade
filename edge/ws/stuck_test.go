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
// is full of what it has not read. The old edge would go on trying to write to it for an hour.
func TestATakeoverDoesNotWaitForASocketThatTakesNothing(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Edges: 2, Grace: time.Hour, Door: ws.Config{Linger: time.Hour},
		Node: edge.Config{Lease: time.Hour, Timeout: time.Hour, Probe: time.Second},
	})
	for _, takeover := range []struct {
		about string
		token bool
	}{{"with its token", true}, {"without it", false}} {
		t.Run(takeover.about, func(t *testing.T) {
			id := fmt.Sprintf("stuck-%v", takeover.token)
			old := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
			old.Send(fmt.Sprintf(`{"type":"agent.register","agent":{"id":%q}}`, id))
			token := old.Expect(`{"type":"agent.registered"}`).Text("resume_token")
			old.Pause()
			sender := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=sender-"+id, nil)
			sender.Expect(`{"type":"agent.registered"}`)
			const messages, size = 5, 400 << 10 // of which the system takes less than one
			for n := range messages {
				sender.Send(fmt.Sprintf(`{"type":"send","id":"m-%d","to":%q,"payload":{"n":%d,"body":"%s"}}`, n, id, n, strings.Repeat("x", size)))
				sender.Expect(fmt.Sprintf(`{"type":"receipt","request_id":"m-%d"}`, n))
			}
			old.Until("the old socket takes nothing more", func() bool { return c.Node(0).Shedder().Held() > size/4 })
			query := "agent_id=" + id
			if takeover.token {
				query += "&resume_token=" + token
			}
			var back *agoratest.Client
			old.Until("the agent is there again", func() bool { // what the system still takes of the old socket is a sign of life
				back = agoratest.Connect(t, agoratest.Direct{}, c.URL(1), query, nil)
				answer := back.Take("an answer")
				if answer.Text("code") == "AGENT_EXISTS" && !takeover.token {
					return false
				}
				want := `{"type":"agent.registered","resumed":"<none>"}`
				if takeover.token {
					want = `{"type":"agent.registered","resumed":true}`
				}
				if d := answer.Match(want); d != "" {
					t.Fatalf("%s: %s", answer, d)
				}
				return true
			})
			for n := range messages {
				back.Await(fmt.Sprintf(`{"type":"message","payload":{"n":%d,"body":"<any>"}}`, n))
			}
			old.Drop()
			back.Until("nothing is held for it any more", func() bool { return c.Node(0).Shedder().Held() < size/4 })
		})
	}
}
