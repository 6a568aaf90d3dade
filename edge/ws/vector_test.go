package ws_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
)

// badFrame is a vector of wire/testdata that refuses a client's frame.
type badFrame struct {
	From  string          `json:"from"`
	Frame json.RawMessage `json:"frame"`
	Text  *string         `json:"text"`
	Hex   string          `json:"hex"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		ID      string `json:"id"`
	} `json:"error"`
}

func (f badFrame) bytes(t *testing.T) string {
	switch {
	case f.Text != nil:
		return *f.Text
	case f.Hex != "":
		b, err := hex.DecodeString(f.Hex)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return string(f.Frame)
}

func TestALiveEdgeRefusesEveryBadVectorOnceAndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Door: ws.Config{MaxErrors: 1 << 20}})
	agent := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=tester", nil)
	agent.Expect(`{"type":"agent.registered"}`)
	paths, err := filepath.Glob("../../wire/testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v badFrame
		if json.Unmarshal(b, &v) != nil || v.From != "client" || v.Error == nil {
			continue
		}
		tried++
		agent.Send(v.bytes(t))
		got := agent.Expect(`{"type":"error","code":"` + v.Error.Code + `"}`)
		if !strings.Contains(got.Text("message"), v.Error.Message) {
			t.Errorf("%s: %s, want the message to hold %q", path, got, v.Error.Message)
		}
		if got.Text("request_id") != v.Error.ID {
			t.Errorf("%s: %s, want request_id %q", path, got, v.Error.ID)
		}
		agent.Barrier()
	}
	if tried < 50 {
		t.Errorf("tried %d vectors, want them all", tried)
	}
}
