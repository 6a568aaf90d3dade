package ws_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// TestAnEdgeThatHoldsTooMuchShedsWhoCameLast has the oldest connections begin
// frames that they do not end, which are so large that the edge is over its limit.
func TestAnEdgeThatHoldsTooMuchShedsWhoCameLast(t *testing.T) {
	t.Parallel()
	const limit = 13 << 17
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Queued: limit}}})
	hogs := []*hog{newHog(t, c.URL(0)), newHog(t, c.URL(0))}
	var agents []*agoratest.Client
	for k := range 8 {
		agents = append(agents, register(t, c, fmt.Sprintf("agent-%d", k)))
	}
	old, last := agents[0], register(t, c, "last")
	last.Send(`{"type":"space.join","id":"join","space":"room"}`, `{"type":"send","id":"start","to":"agent-7","stream_id":"s","stream":true}`)
	last.Expect(`{"type":"space.joined","id":"join"}`, `{"type":"receipt","request_id":"start","status":"stored"}`)

	for _, h := range hogs {
		h.begin(900 << 10)
	}
	shedder := c.Node(0).Shedder()
	last.Until("the edge is over its limit", func() bool { return shedder.Held() > limit })

	_, r, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), "", nil)
	if err == nil || r == nil || r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a newcomer: %v %+v, want 503 with Retry-After", err, r)
	}
	old.Send(`{"type":"send","id":"old","to":"agent-7","payload":1}`)
	old.Expect(`{"type":"receipt","request_id":"old","status":"stored"}`)
	last.Send(`{"type":"send","id":"one","to":"agent-7","payload":1}`)
	last.Expect(`{"type":"error","request_id":"one","code":"UNAVAILABLE","retry_after_ms":1000}`)
	last.Send(`{"type":"space.publish","id":"event","space":"room","data":{}}`)
	last.Expect(`{"type":"error","request_id":"event","code":"UNAVAILABLE","retry_after_ms":1000}`)
	begin := time.Now()
	last.Send(`{"type":"send_chunk","to":"agent-7","stream_id":"s","chunk":"a"}`, `{"type":"send_chunk","to":"agent-7","stream_id":"s","chunk":"b"}`)
	last.Barrier()
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("two chunks were read within %v: want them slowed", took)
	}

	for _, h := range hogs {
		h.finish()
	}
	last.Until("the edge holds little again", func() bool { return shedder.Held() < limit/2 })
	last.Send(`{"type":"send","id":"again","to":"agent-7","payload":2}`)
	last.Expect(`{"type":"receipt","request_id":"again","status":"stored"}`)
	register(t, c, "newcomer")
	seven := agents[7]
	seven.ExpectAll(`{"type":"message","from":"last","stream_id":"s"}`, `{"type":"message","from":"agent-0","payload":1}`,
		`{"type":"message_chunk","chunk":"a"}`, `{"type":"message_chunk","chunk":"b"}`, `{"type":"message","from":"last","payload":2}`)
}

// TestFarBeyondItsLimitAnEdgeClosesWhoCameLast has later and later connections hold more and more.
func TestFarBeyondItsLimitAnEdgeClosesWhoCameLast(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Queued: 1 << 20}}})
	var hogs []*hog
	for range 4 {
		hogs = append(hogs, newHog(t, c.URL(0)))
	}
	for _, h := range hogs {
		h.begin(600 << 10) // three are far too many, two are not
	}
	for k, h := range hogs[2:] {
		if _, _, err := h.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
			t.Errorf("hog %d ended with %v, want close 1013", k+2, err)
		}
	}
	for _, h := range hogs[:2] {
		h.finish()
		if _, b, err := h.ReadMessage(); err != nil || !strings.Contains(string(b), `"agents"`) {
			t.Errorf("an old connection got %.200s, %v", b, err)
		}
	}
}

// hog is a connection that begins a large frame.
type hog struct {
	*websocket.Conn
	t *testing.T
	w interface {
		Write([]byte) (int, error)
		Close() error
	}
}

func newHog(t *testing.T, url string) *hog {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(await.Long))
	return &hog{Conn: c, t: t}
}

// begin sends the beginning of a frame of about so many bytes.
func (h *hog) begin(size int) {
	h.t.Helper()
	var err error
	if h.w, err = h.NextWriter(websocket.TextMessage); err == nil {
		_, err = h.w.Write([]byte(`{"type":"list","filler":"` + strings.Repeat("x", size)))
	}
	if err != nil {
		h.t.Errorf("begin a frame: %v", err)
	}
}

// finish sends the rest of it.
func (h *hog) finish() {
	h.t.Helper()
	if _, err := h.w.Write([]byte(`"}`)); err != nil {
		h.t.Errorf("finish a frame: %v", err)
	}
	if err := h.w.Close(); err != nil {
		h.t.Errorf("finish a frame: %v", err)
	}
}

// register connects an agent.
func register(t *testing.T, c *agoratest.Cluster, id string) *agoratest.Client {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	a.Send(fmt.Sprintf(`{"type":"register","id":%q}`, id))
	a.Expect(fmt.Sprintf(`{"type":"registered","id":%q}`, id))
	return a
}
