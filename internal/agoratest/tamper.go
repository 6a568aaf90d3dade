package agoratest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// Tamper puts a proxy between agents and an edge, and returns its address. Every
// frame from the edge goes through hand, which returns what reaches the agent in
// its place: nothing, the frame, or several. hand is called by many goroutines, one at a time.
func Tamper(t testing.TB, edge string, hand func(frame []byte) [][]byte) string {
	t.Helper()
	var mu sync.Mutex
	var conns sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns.Add(1)
		defer conns.Done()
		to := edge
		if r.URL.RawQuery != "" { // which may bind the agent
			to += "?" + r.URL.RawQuery
		}
		out, _, err := websocket.DefaultDialer.DialContext(r.Context(), to, nil)
		if err != nil {
			http.Error(w, "no edge", http.StatusServiceUnavailable)
			return
		}
		defer out.Close()
		in, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer in.Close()
		var up sync.WaitGroup
		defer up.Wait()
		up.Go(func() {
			pass(out, in, func(frame []byte) [][]byte { return [][]byte{frame} })
			out.Close() // ends the other direction
		})
		pass(in, out, func(frame []byte) [][]byte {
			mu.Lock()
			defer mu.Unlock()
			return hand(frame)
		})
		in.Close()
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		conns.Wait()
	})
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/ws"
}

// pass hands frames on until either side ends, and its way of ending.
func pass(to, from *websocket.Conn, hand func(frame []byte) [][]byte) {
	for {
		_, frame, err := from.ReadMessage()
		if err != nil {
			bye := websocket.FormatCloseMessage(websocket.CloseAbnormalClosure, "")
			if e, ok := err.(*websocket.CloseError); ok {
				bye = websocket.FormatCloseMessage(e.Code, e.Text)
			}
			_ = to.WriteMessage(websocket.CloseMessage, bye) // the other side may be gone
			return
		}
		for _, b := range hand(frame) {
			if to.WriteMessage(websocket.TextMessage, b) != nil {
				return
			}
		}
	}
}
