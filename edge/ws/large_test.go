package ws_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
)

// What is taken can be delivered: no frame that an agent is sent is larger than limits.frame, whatever stands around the body that another one has sent.
func TestNothingIsDeliveredInALargerFrameThanOneMayBe(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	c := agoratest.Start(t, agoratest.Options{Edges: 2, Node: edge.Config{Limits: admission.Limits{Frame: most}}})
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=a", nil)
	b := agoratest.Connect(t, agoratest.Direct{}, c.URL(1), "agent_id=b", nil)
	for _, m := range []*agoratest.Client{a, b} {
		m.Send(`{"type":"space.join","id":"j","space":"s"}`)
		m.Await(`{"type":"space.joined"}`)
	}
	largest := func(frame string, fill string) string { // with as much in it as fits
		return fmt.Sprintf(frame, strings.Repeat(fill, (most-len(fmt.Sprintf(frame, "")))/len(fill)))
	}
	for about, frame := range map[string]string{
		"a message":         largest(`{"type":"send","id":"x","to":"b","payload":"%s"}`, "x"),
		"a numbered one":    largest(`{"type":"send","id":"x","to":"b","n":1,"payload":"%s"}`, "x"),
		"a start":           largest(`{"type":"send","id":"x","to":"b","stream_id":"s","stream":true,"payload":"%s"}`, "x"),
		"an answer":         largest(`{"type":"reply","id":"x","to":"b","payload":"%s"}`, "x"),
		"an event":          largest(`{"type":"space.publish","id":"x","space":"s","data":{"other":"%s"}}`, "x"),
		"text that unfolds": largest(`{"type":"send","id":"x","to":"b","payload":{"request_id":"q","body":"%s"}}`, `\u0001`),
	} {
		a.Send(frame)
		if f := a.Await(`{"request_id":"x"}`); f.Text("code") != "MESSAGE_TOO_LARGE" {
			t.Errorf("%s is answered with %s", about, f)
		}
	}
	a.Send(`{"type":"send","to":"b","stream_id":"t","stream":true}`)
	a.Send(largest(`{"type":"send_chunk","id":"x","to":"b","stream_id":"t","chunk":"%s"}`, "\x7f"))
	a.Await(`{"type":"error","code":"MESSAGE_TOO_LARGE","request_id":"x"}`)
	a.Send(fmt.Sprintf(`{"type":"send","id":"y","to":"b","payload":"%s"}`, strings.Repeat("x", most-1024)))
	a.Await(`{"type":"receipt","request_id":"y"}`)
	a.Send(`{"type":"send","id":"z","to":"b","payload":"last"}`)
	for {
		f := b.Take("a frame")
		if len(f) > most {
			t.Errorf("a frame of %d bytes: %.200s", len(f), f)
		}
		if f.Raw("payload") == `"last"` {
			return
		}
	}
}
