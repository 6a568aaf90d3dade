package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/await"
)

// logLines returns the lines of a JSON log that say msg.
func logLines(t *testing.T, log, msg string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m["msg"] == msg {
			lines = append(lines, m)
		}
	}
	return lines
}

// guarded launches an edge that knows one token, and returns it.
func guarded(t *testing.T, args ...string) (e *running, token string) {
	t.Helper()
	token, line, err := auth.NewToken(auth.Line{Name: "tester", Agents: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(append(backends(t), "--auth", "file:"+path, "--log.format", "json"), args...)
	return launch(t, args...).ready(), token
}

func TestOneLineTellsEachStartAndEndOfASession(t *testing.T) {
	t.Parallel()
	e, token := guarded(t)
	a := connect(t, e.public+"?agent_id=alice&token="+token)
	a.hear("agent.registered")
	a.say(`{"type":"send","to":"alice","payload":{"a":1}}`)
	a.hear("message")
	if err := a.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "")); err != nil {
		t.Fatal(err)
	}
	var ended []map[string]any
	await.True(t, "the end is logged", func() bool {
		ended = logLines(t, e.stderr.String(), "session ended")
		return len(ended) > 0
	})
	started := logLines(t, e.stderr.String(), "session started")
	if len(started) != 1 || len(ended) != 1 {
		t.Fatalf("%d starts and %d ends are logged, want one each", len(started), len(ended))
	}
	for key, want := range map[string]any{
		"agent": "alice", "tenant": "default", "principal": "tester", "reason": "goodbye", "close": 1000.0,
		"frames_in": 1.0, "frames_out": 2.0,
	} {
		if ended[0][key] != want {
			t.Errorf("%s = %v, want %v", key, ended[0][key], want)
		}
	}
	for _, key := range []string{"session", "conn", "edge"} {
		if v, _ := ended[0][key].(string); v == "" || v != started[0][key] {
			t.Errorf("%s is %v at the start and %v at the end", key, started[0][key], ended[0][key])
		}
	}
	for _, key := range []string{"bytes_in", "bytes_out", "lasted_ms"} {
		if v, _ := ended[0][key].(float64); v <= 0 {
			t.Errorf("%s = %v", key, ended[0][key])
		}
	}
}

// refusedAt tries to connect, in vain.
func refusedAt(t *testing.T, url string) {
	t.Helper()
	if c, r, err := websocket.DefaultDialer.Dial(url, nil); err == nil {
		c.Close()
		t.Fatal("let in")
	} else if r == nil {
		t.Fatal(err)
	}
}

func TestRefusalsAreLoggedAFewASecondAndTheRestCounted(t *testing.T) {
	t.Parallel()
	e, _ := guarded(t)
	const tries = 60
	begin := time.Now()
	for range tries {
		refusedAt(t, e.public)
	}
	all := 0
	await.True(t, "every refusal is logged or counted", func() bool { // the line after a second tells of those before it
		refusedAt(t, e.public)
		lines := logLines(t, e.stderr.String(), "refused")
		all = 0
		for _, l := range lines {
			if l["code"] != "UNAUTHORIZED" || l["why"] == "" || l["from"] == "" {
				t.Fatalf("line %v", l)
			}
			left, _ := l["left_out"].(float64)
			all += 1 + int(left)
		}
		if took := time.Since(begin); len(lines) > 5*int(took.Seconds()+2) {
			t.Fatalf("%d lines for %d refusals in %v", len(lines), tries, took)
		}
		return all >= tries
	})
}

func TestARefusalNamesTheClientAndNotTheProxyBeforeIt(t *testing.T) {
	t.Parallel()
	for about, args := range map[string][]string{"X-Forwarded-For": nil, "PROXY v2": {"--server.proxy-protocol"}} {
		e, token := guarded(t, append(args, "--server.trusted-proxies", "127.0.0.1")...)
		d, header := websocket.Dialer{}, http.Header{"X-Forwarded-For": {"6.6.6.6, 192.0.2.7"}} // the first is the client's own word
		if about == "PROXY v2" {
			header = http.Header{}
			d.NetDial = func(network, addr string) (net.Conn, error) {
				c, err := net.Dial(network, addr)
				if err == nil {
					_, err = io.WriteString(c, porttest.ProxyHeader(t, 2))
				}
				return c, err
			}
		}
		if c, _, err := d.Dial(e.public, header); err == nil {
			c.Close()
			t.Fatal("let in without a token")
		}
		header.Set("Authorization", "Bearer "+token)
		c, _, err := d.Dial(e.public, header)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.WriteMessage(websocket.TextMessage, []byte(`{"type":"what?"}`)); err != nil {
			t.Fatal(err)
		}
		var lines []map[string]any
		await.True(t, "both refusals are logged", func() bool {
			lines = logLines(t, e.stderr.String(), "refused")
			return len(lines) >= 2
		})
		for _, l := range lines {
			if l["from"] != "192.0.2.7" {
				t.Errorf("%s: the line of %v says that it came from %v, want 192.0.2.7", about, l["code"], l["from"])
			}
		}
	}
}

func TestNeitherTokensNorPayloadsReachALog(t *testing.T) {
	t.Parallel()
	e, token := guarded(t, "--log.level", "debug")
	const word = "canary-7f3a"
	a := connect(t, e.public+"?agent_id=alice&token="+token)
	a.hear("agent.registered")
	a.say(`{"type":"space.join","id":"1","space":"lab"}`)
	a.hear("space.joined")
	for _, frame := range []string{
		`{"type":"send","to":"alice","payload":{"secret":"` + word + `"}}`,
		`{"type":"send","to":"nobody","payload":{"secret":"` + word + `"}}`,
		`{"type":"send","to":"alice","payload":{"secret":"` + word,
		`{"type":"send","to":17,"payload":"` + word + `"}`,
		`{"type":"send","payload":"` + word + `"}`,
		`{"type":"space.publish","space":"lab","data":{"text":"` + word + `"}}`,
		`{"type":"space.publish","space":"lab","data":"` + word + `"}`,
		`{"type":"space.publish","space":"other","data":{"text":"` + word + `"}}`,
		`{"type":"send_chunk","to":"alice","stream_id":"s","chunk":"` + word + `"}`,
		`{"type":"agent.register","agent":{"id":"bob","metadata":{"x":"` + word + `"}}}`,
		word, `"` + word + `"`, `{"` + word + `":1}`,
	} {
		a.say(frame)
	}
	for errors := 0; errors < 8; {
		if _, b, err := a.ReadMessage(); err != nil {
			t.Fatal(err)
		} else if strings.Contains(string(b), `"type":"error"`) {
			errors++
		}
	}
	refusedAt(t, e.public+"?token="+word+"&agent_id=x")
	e.ended(a)
	log := e.stderr.String()
	if len(logLines(t, log, "refused")) == 0 {
		t.Error("no refusal was logged: the test shows nothing")
	}
	for _, secret := range []string{word, token, token[:20]} {
		if strings.Contains(log, secret) {
			for line := range strings.Lines(log) {
				if strings.Contains(line, secret) {
					t.Errorf("logged: %s", line)
				}
			}
		}
	}
}

func TestNoLineNamesTheEdgeTwice(t *testing.T) {
	t.Parallel()
	e := launch(t, append(backends(t), "--log.level", "debug", "--log.format", "text")...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	e.ended(a)
	for line := range strings.Lines(e.stderr.String()) {
		if strings.Count(line, " edge=") > 1 {
			t.Errorf("%s", line)
		}
	}
}
