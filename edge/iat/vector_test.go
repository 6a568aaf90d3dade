package iat_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// vector is a request at edge 0, and what comes of it while bob is there. $ID in it stands for a name that nothing else
// has.
type vector struct {
	About   string            `json:"about"`
	Method  string            `json:"method"` // GET; POST where there is a body
	Path    string            `json:"path"`   // /a2a
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`   // byte for byte; a string's text where it is a string
	Base64  string            `json:"base64"` // in place of a body that is no text
	Fill    int               `json:"fill"`   // in place of a body: a notification to bob with so many letters

	Hears []json.RawMessage `json:"hears"` // what bob is sent, as patterns of agoratest
	Says  []json.RawMessage `json:"says"`  // what bob says then

	Status int               `json:"status"`
	Shows  map[string]string `json:"shows"`  // headers of the answer; * for any
	Answer json.RawMessage   `json:"answer"` // its body, as a pattern
	Text   *string           `json:"text"`   // its body, byte for byte
	Error  *wrong            `json:"error"`  // its body is the envelope of this error

	Posted bool `json:"posted"` // no socket has a way to say it
}

// load reads the vectors of a folder, each strictly.
func load(t *testing.T, folder string) map[string]*vector {
	t.Helper()
	all := map[string]*vector{}
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		v := new(vector)
		if err := d.Decode(v); err != nil || v.About == "" || v.Status == 0 {
			t.Fatalf("%s: %v, or it lacks about or status", file, err)
		}
		if v.Path == "" {
			v.Path = "/a2a"
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = v
	}
	return all
}

// play is a vector as it is played once.
type play struct {
	*vector
	id string
}

func (p play) text(raw string) string { return strings.ReplaceAll(raw, "$ID", p.id) }

func (p play) content(t *testing.T) string {
	t.Helper()
	switch {
	case p.Base64 != "":
		b, err := base64.StdEncoding.DecodeString(p.Base64)
		if err != nil {
			t.Fatal(err)
		}
		return p.text(string(b))
	case p.Fill > 0:
		return said{id: p.id, kind: "notification", from: "al", to: "bob", payload: `"` + strings.Repeat("x", p.Fill) + `"`}.String()
	case len(p.Body) > 0 && p.Body[0] == '"':
		var text string
		if err := json.Unmarshal(p.Body, &text); err != nil {
			t.Fatal(err)
		}
		return p.text(text)
	}
	return p.text(string(p.Body))
}

// plays has the request made, and bob do what the vector says.
func (p play) plays(t *testing.T, s *site, c *http.Client, bob *agoratest.Client) {
	t.Helper()
	method := p.Method
	if method == "" && (p.Body != nil || p.Base64 != "" || p.Fill > 0) {
		method = http.MethodPost
	}
	got := s.start(t, call{client: c, method: method, path: p.text(p.Path), headers: p.Headers, body: p.content(t)})
	for _, h := range p.Hears {
		bob.Expect(p.text(string(h)))
	}
	for _, say := range p.Says {
		bob.Send(p.text(string(say)))
	}
	p.holds(t, await.Recv(t, "an answer", got), method)
}

// holds compares an answer with what is wanted.
func (p play) holds(t *testing.T, a answer, method string) {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.status != p.Status {
		t.Errorf("status %d, want %d: %.500s", a.status, p.Status, a.body)
	}
	for name, want := range p.Shows {
		if got := a.header.Get(name); got != want && (want != "*" || got == "") {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if p.Text != nil && a.body != p.text(*p.Text) {
		t.Errorf("answered\n%q, want\n%q", a.body, p.text(*p.Text))
	}
	if p.Answer != nil {
		if why := agoratest.Frame(a.body).Match(p.text(string(p.Answer))); why != "" {
			t.Errorf("answered %s, want %s: %s", a.body, p.Answer, why)
		}
	}
	if p.Status < 400 || method == http.MethodHead {
		return
	}
	if p.Error == nil {
		t.Fatal("the vector does not say which error this is")
	}
	faulty(t, a.body, p.wrong())
	if retry := a.header.Get("Retry-After"); (p.Status == 503 || p.Status == 429) != (retry != "") {
		t.Errorf("status %d, and Retry-After is %q", a.status, retry)
	}
}

func (p play) wrong() wrong {
	w := *p.Error
	w.Parent = p.text(w.Parent)
	return w
}

// plays has every vector of a folder played over each version of HTTP.
func (s *site) plays(t *testing.T, folder string, bob *agoratest.Client) {
	n := 0
	for name, v := range load(t, folder) {
		for version, c := range map[string]*http.Client{"HTTP1": s.one, "HTTP2": s.two} {
			n++
			p := play{v, fmt.Sprintf("m-%d", n)}
			t.Run(name+"/"+version, func(t *testing.T) { p.plays(t, s, c, bob) })
		}
	}
}

// vectorSettings are those of the sites at which vectors are played: what an edge waits for, it waits for briefly.
var vectorSettings = setup{
	Options: agoratest.Options{Edges: 2, Node: edge.Config{Patience: 50 * time.Millisecond}}, door: iat.Config{MaxErrors: 1 << 20},
}

// bobRegisters is what bob says of itself in vectors.
const bobRegisters = `{"header":{"msg_id":"r","type":"request","from":"bob"},"payload":{"action":"register","agent":{"id":"bob","name":"Bob","description":"a builder"},"tools":[` +
	`{"name":"sum","description":"adds numbers","input_schema":{"type":"object","properties":{"of":{"type":"array","items":{"type":"number"}}},"required":["of"]},"output_schema":{"type":"number"}},` +
	`{"name":"open","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"workspace_root":"/work/bob"}}`

// populate has agents be there while vectors are played: bob at edge 1 by a socket, wes of the relay's dialect, and ida
// that has registered and is away.
func populate(t *testing.T, s *site, token string) (bob *agoratest.Client) {
	t.Helper()
	bob = agoratest.Connect(t, agoratest.Direct{}, s.socketURL(1), queryOf("bob", "token", token), nil)
	bob.Send(bobRegisters)
	bob.Expect(`{"header":{"msg_id":"<any>","parent_id":"r","type":"response","from":"agora","to":"bob","timestamp":"<any>"},"payload":{"status":"registered","agent":"bob","tools":2}}`)
	wes := agoratest.Connect(t, agoratest.Direct{}, s.URL(1), "agent_id=wes&token="+token, nil)
	wes.Expect(`{"type":"agent.registered"}`)
	s.ask(t, post(1, `{"header":{"msg_id":"r","type":"notification","from":"ida"},"payload":{"action":"register","tools":[{"name":"knit"}]}}`).by(token)).is(t, 202, "")
	await.True(t, "edge 0 sees all tools", func() bool {
		a := s.ask(t, call{path: "/a2a/tools", token: token})
		return strings.Count(a.body, `"agent":`) == 3
	})
	return bob
}

// TestVectors plays the vectors of an edge without authentication.
func TestVectors(t *testing.T) {
	t.Parallel()
	s := open(t, vectorSettings)
	s.plays(t, "open", populate(t, s, ""))
}

// TestGuardedVectors plays those of an edge with authentication.
func TestGuardedVectors(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, vectorSettings)
	s.plays(t, "guarded", populate(t, s, "t/admin"))
}

// TestErrorsAtASocketAreEnvelopesAndItStays says what vectors have refused at a socket as well.
func TestErrorsAtASocketAreEnvelopesAndItStays(t *testing.T) {
	t.Parallel()
	s := open(t, vectorSettings)
	populate(t, s, "")
	al := s.socket(t, 0, "al")
	n := 0
	for name, v := range load(t, "open") {
		if v.Error == nil || v.Posted || v.Path != "/a2a" || v.Method != "" {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			p := play{v, fmt.Sprintf("s-%d", n)}
			al.Send(p.content(t))
			isRefused(t, al, p.wrong())
		})
	}
	if n < 30 {
		t.Errorf("there are %d of them, want more", n)
	}
}

// isRefused wants the next envelope to be an error, and the socket to go on.
func isRefused(t *testing.T, c *agoratest.Client, w wrong) {
	t.Helper()
	f := string(c.Take("an error"))
	w.To = fieldOf(f, "header", "to") // who is bound, or who is named where nothing else could be read
	faulty(t, f, w)
	goesOn(c)
}

// goesOn wants a socket to answer, and nothing to have come before.
func goesOn(c *agoratest.Client) {
	c.Send(`{"header":{"msg_id":"still there","type":"request"},"payload":{"action":"register"}}`)
	c.Expect(`{"header":{"msg_id":"<any>","parent_id":"still there","type":"response","from":"agora","to":"<any>","timestamp":"<any>"}}`)
}
