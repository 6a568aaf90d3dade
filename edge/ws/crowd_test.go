package ws

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/await"
)

func TestOneConnectionTooManyIsRefusedBeforeTheUpgrade(t *testing.T) {
	d, s := serve(t, Config{}, node{admit: crowded(1).Admit})
	first := dial(t, s)
	await.True(t, "the first one is here", func() bool { return d.stats.Connections.Load() == 1 }) // it counts after its handshake
	_, r, err := websocket.DefaultDialer.Dial(address(s), nil)
	if err == nil || r == nil || r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Fatalf("second connection: %v, %+v; want 503 with Retry-After", err, r)
	}
	first.Close()
	await.True(t, "the first one has gone", func() bool { return d.stats.Connections.Load() == 0 })
	dial(t, s)
	if _, r, _ := websocket.DefaultDialer.Dial(strings.Replace(address(s), goodToken, "bad", 1), nil); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a full door looked at credentials: %d", r.StatusCode)
	}
}

func TestARefusedConnectionGivesItsSeatBack(t *testing.T) {
	_, s := serve(t, Config{}, node{admit: crowded(1).Admit})
	for range 3 {
		_, r, _ := websocket.DefaultDialer.Dial(strings.Replace(address(s), goodToken, "bad", 1), nil)
		if r == nil || r.StatusCode != http.StatusUnauthorized {
			t.Fatalf("with bad credentials: %+v, want 401", r)
		}
		r, err := http.DefaultClient.Do(oldHandshake(t, s))
		if err != nil || r.StatusCode != http.StatusBadRequest {
			t.Fatalf("without a version that is spoken: %v %+v", err, r)
		}
		r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	dial(t, s)
}

// oldHandshake asks for a WebSocket of a version that nobody speaks any more.
func oldHandshake(t *testing.T, s *httptest.Server) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, strings.Replace(address(s), "ws:", "http:", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "8", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func TestWhatADoorHoldsIsCounted(t *testing.T) {
	d, s := serve(t, Config{}, node{frame: 1 << 20})
	c := dial(t, s)
	held := func() (sum int64) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.conns {
			held, _ := c.Held()
			sum += held
		}
		return sum
	}
	await.True(t, "nothing is held", func() bool { return held() == 0 })
	w, err := c.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	part := []byte(`{"type":"list","filler":"` + strings.Repeat("x", 300<<10))
	if _, err := w.Write(part); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a frame that is still coming is counted", func() bool { return held() >= 256<<10 })
	if _, err := w.Write([]byte(`"`)); err != nil { // not JSON: answered with an error
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c.hearError("INVALID_REQUEST")
	await.True(t, "nothing is held any more", func() bool { return held() == 0 })
}
