package iat_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/iat"
)

// wireVector is what of a vector of package wire/iat concerns a live edge.
type wireVector struct {
	Frame   json.RawMessage `json:"frame"`
	Text    *string         `json:"text"`
	Base64  *string         `json:"base64"`
	Bound   string          `json:"bound"`
	Root    string          `json:"root"`
	Decoded json.RawMessage `json:"decoded"`
	Error   *struct{ Path, ID, From string }
}

func (v *wireVector) bytes(t *testing.T) string {
	t.Helper()
	switch {
	case v.Text != nil:
		return *v.Text
	case v.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*v.Base64)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return string(v.Frame)
}

func loadWire(t *testing.T) map[string]*wireVector {
	t.Helper()
	all := map[string]*wireVector{}
	files, err := filepath.Glob("../../wire/testdata/iat/*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d vectors: %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := new(wireVector)
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = v
	}
	return all
}

// TestWhatIsNoEnvelopeIsRefusedByLiveEdges says the bad vectors by POST and at a socket.
func TestWhatIsNoEnvelopeIsRefusedByLiveEdges(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: iat.Config{MaxErrors: 1 << 20}})
	al := s.socket(t, 0, "al")
	for name, v := range loadWire(t) {
		if v.Error == nil {
			continue
		}
		w := wrong{Code: agora.InvalidRequest, Path: v.Error.Path, Parent: v.Error.ID, To: v.Error.From}
		versions := map[string]*http.Client{"HTTP1": s.one, "HTTP2": s.two}
		if name == "bad-bom" { // a body may have a byte order mark, a message of a socket none
			versions = nil
		}
		for version, c := range versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				s.ask(t, call{client: c, method: http.MethodPost, path: "/a2a", body: v.bytes(t)}).refused(t, w)
			})
		}
		t.Run(name+"/socket", func(t *testing.T) {
			al.Send(v.bytes(t))
			isRefused(t, al, w)
		})
	}
}

// TestEnvelopesPassLiveEdges has the good vectors delivered, byte for byte. Each is played in a tenant of its own.
func TestEnvelopesPassLiveEdges(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 2}})
	for name, v := range loadWire(t) {
		if v.Decoded == nil || v.Bound == "" {
			continue
		}
		t.Run(name, func(t *testing.T) { s.passes(t, name, v) })
	}
}

// passes has who is bound say a vector, and whom it is for hear it.
func (s *site) passes(t *testing.T, tenant string, v *wireVector) {
	t.Helper()
	var e wire.Envelope
	if err := wire.Decode([]byte(v.bytes(t)), &e, wire.Limits{}); err != nil {
		t.Fatal(err)
	}
	token := tenant + "/someone"
	sender := s.socket(t, 0, v.Bound, "token", token)
	if v.Root != "" {
		sender.Send(said{id: "root", kind: "request", from: v.Bound, to: "agora", payload: `{"action":"register","workspace_root":` + agoratest.Quote(v.Root) + `}`}.String())
		sender.Expect(`{"payload":{"status":"registered","agent":"<any>","tools":0}}`)
	}
	if e.Action == wire.ActionRegister {
		sender.Send(v.bytes(t))
		if e.Type == wire.Request {
			sender.Expect(`{"header":{"msg_id":"<any>","parent_id":` + agoratest.Quote(e.ID) + `,"type":"response","from":"agora","to":"<any>","timestamp":"<any>"}}`)
		}
		goesOn(sender)
		return
	}
	receiver := sender
	if e.To != v.Bound {
		receiver = s.socket(t, 1, e.To, "token", token)
	}
	sender.Send(v.bytes(t))
	got := string(receiver.Take("the envelope"))
	got, _, _ = strings.Cut(got, `,"seq":`)
	var m struct {
		Metadata struct {
			Deadline int64 `json:"deadline_ms"`
		}
	}
	if err := json.Unmarshal([]byte(got+"}"), &m); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if want := v.delivered(t, &e, m.Metadata.Deadline); got+"}" != want {
		t.Errorf("delivered\n%s, want\n%s", got+"}", want)
	}
}

// delivered returns what is delivered of an envelope, of whose time so much is left.
func (v *wireVector) delivered(t *testing.T, e *wire.Envelope, left int64) string {
	t.Helper()
	m := agora.Message{Body: e.Payload, Meta: agora.Meta{Dialect: wire.Dialect, Head: e.AppendHead(nil, agora.AgentID(v.Bound), v.root(e))}}
	if text, ok := wire.TextBody(e.Payload); ok && e.Type == wire.Chunk {
		m.Kind, m.Part, m.Body, m.Media = agora.Reply, agora.Chunk, text, agora.MediaText
	}
	return string(wire.AppendEnvelope(nil, &m, wire.Delivery{DeadlineMS: left}))
}

// root returns the workspace that the addressee is told of: with requests alone.
func (v *wireVector) root(e *wire.Envelope) string {
	if e.Type != wire.Request {
		return ""
	}
	return v.Root
}
