package ws_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// Anyone who continues with its session by its token hears where its numbers go on, also those whose receipts it has
// never seen.
func TestWhoGoesOnHearsWhichNumbersComeNext(t *testing.T) {
	t.Parallel()
	for about, leave := range map[string]func(*agoratest.Cluster, *agoratest.Client){
		"a lost socket": func(_ *agoratest.Cluster, a *agoratest.Client) { a.Drop() },
		"a dead edge":   func(c *agoratest.Cluster, _ *agoratest.Client) { c.CutEdge(0) },
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			c := agoratest.Start(t, agoratest.Options{Edges: 2, Grace: time.Minute})
			at := func(k int, query string) (*agoratest.Client, agoratest.Frame) {
				a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), query, nil)
				return a, a.Await(`{"type":"agent.registered"}`)
			}
			bob, _ := at(1, "agent_id=bob")
			at(1, "agent_id=carol")
			at(1, "agent_id=dave")
			a, first := at(0, "agent_id=a")
			if first.Has("next_n") || first.Has("space_next_n") {
				t.Errorf("a new session is told %s", first)
			}
			a.Send(`{"type":"space.join","id":"j","space":"room"}`)
			a.Await(`{"type":"space.joined"}`)
			for n := 1; n <= 5; n++ {
				a.Send(fmt.Sprintf(`{"type":"send","to":"bob","n":%d,"payload":%d}`, n, n))
			}
			a.Send(`{"type":"send","to":"carol","n":7,"stream_id":"s","stream":true}`, `{"type":"send_chunk","to":"carol","n":8,"stream_id":"s","chunk":"x"}`)
			a.Send(`{"type":"send","id":"p","to":"dave","payload":"without a number"}`, `{"type":"space.publish","space":"room","n":3,"data":{"text":"x"}}`)
			for wanted := []string{`{"type":"receipt","n":5}`, `{"type":"receipt","n":8}`, `{"type":"receipt","request_id":"p"}`, `{"type":"receipt","n":3}`}; len(wanted) > 0; {
				f := a.Take(wanted[0])
				wanted = slices.DeleteFunc(wanted, func(w string) bool { return f.Match(w) == "" })
			}
			leave(c, a)
			a, again := at(1, "agent_id=a&resume_token="+first.Text("resume_token"))
			if again.Raw("resumed") != "true" || again.Raw("next_n") != `{"bob":6,"carol":9}` || again.Raw("space_next_n") != `{"room":4}` {
				t.Errorf("who goes on is told %s", again)
			}
			a.Send(`{"type":"send","to":"bob","n":6,"payload":"on"}`, `{"type":"send_end","to":"carol","n":9,"stream_id":"s"}`)
			for bob.Await(`{"type":"message","from":"a"}`).Raw("payload") != `"on"` {
			}
			a.Drop()
			if _, w := at(1, "agent_id=a"); w.Has("next_n") {
				t.Errorf("a new process is told %s", w)
			}
		})
	}
}
