package rest

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// vector is a request, and what comes of it while the agents that register says are there.
type vector struct {
	About   string            `json:"about"`
	Method  string            `json:"method"` // GET; POST where there is a body
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Base64  string            `json:"base64"` // in place of a body that is no text
	Fill    int               `json:"fill"`   // in place of a body: a string of so many letters

	Hears json.RawMessage   `json:"hears"` // what bob is sent, as a pattern of agoratest
	Says  []json.RawMessage `json:"says"`  // what bob says then
	Told  json.RawMessage   `json:"told"`  // what bob is sent once the request is answered

	Status int               `json:"status"`
	Shows  map[string]string `json:"shows"`  // headers of the answer
	Answer json.RawMessage   `json:"answer"` // its body, as a pattern; a whole one where it is an error
	Text   *string           `json:"text"`   // its body, byte for byte
}

func (v *vector) request(t *testing.T, url string) *http.Request {
	t.Helper()
	body := v.Body
	if v.Base64 != "" {
		b, err := base64.StdEncoding.DecodeString(v.Base64)
		if err != nil {
			t.Fatal(err)
		}
		body = string(b)
	}
	if v.Fill > 0 {
		body = `"` + strings.Repeat("x", v.Fill) + `"`
	}
	method := v.Method
	switch {
	case method != "":
	case body != "":
		method = http.MethodPost
	default:
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(await.Context(t), method, url+v.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range v.Headers {
		r.Header.Set(name, value)
	}
	return r
}

// plays has the request made by a client, and bob do what the vector says.
func (v *vector) plays(t *testing.T, url string, c *http.Client, bob *agoratest.Client) {
	t.Helper()
	type answer struct {
		*http.Response
		body string
		err  error
	}
	answered := make(chan answer, 1)
	r := v.request(t, url)
	go func() {
		resp, err := c.Do(r)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		answered <- answer{resp, string(b), err}
	}()
	if v.Hears != nil {
		bob.Expect(string(v.Hears))
	}
	for _, f := range v.Says {
		bob.Send(string(f))
	}
	a := await.Recv(t, "an answer", answered)
	if a.err != nil {
		t.Fatal(a.err)
	}
	v.holds(t, a.Response, a.body)
	if v.Told != nil {
		bob.Expect(string(v.Told))
	}
}

// holds compares an answer with what is wanted.
func (v *vector) holds(t *testing.T, r *http.Response, body string) {
	t.Helper()
	if r.StatusCode != v.Status {
		t.Errorf("status %d, want %d", r.StatusCode, v.Status)
	}
	for name, want := range v.Shows {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if v.Text != nil && body != *v.Text {
		t.Errorf("answered\n%q, want\n%q", body, *v.Text)
	}
	if v.Answer != nil {
		if why := agoratest.Frame(body).Match(string(v.Answer)); why != "" {
			t.Errorf("answered %s, want %s: %s", body, v.Answer, why)
		}
	}
	if v.Status >= 400 && r.Request.Method != http.MethodHead {
		refused(t, body)
	}
}

// refused expects the body that every error has.
func refused(t testing.TB, body string) agora.Code {
	t.Helper()
	var whole map[string]json.RawMessage
	var inner map[string]string
	if json.Unmarshal([]byte(body), &whole) != nil || len(whole) != 1 || json.Unmarshal(whole["error"], &inner) != nil {
		t.Errorf(`the error is %s, want {"error":{…}}`, body)
		return ""
	}
	if len(inner) != 2 || inner["code"] == "" || inner["message"] == "" {
		t.Errorf(`the error is %s, want {"error":{"code":…,"message":…}}`, body)
	}
	return agora.Code(inner["code"])
}

// populate has agents be there while vectors are played: bob listens, and two have registered without a connection.
func populate(t *testing.T, s *site) (bob *agoratest.Client) {
	t.Helper()
	who, err := s.Node(1).Authenticate(t.Context(), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []agora.Agent{
		{ID: "ada", Name: "Ada", Dialect: "other", Domain: "math", Skills: []agora.Skill{{Name: "add", Description: "adds numbers"}},
			Registration: agora.Registration{Media: "text/plain", Body: []byte("as it came")}},
		{ID: "eve", Name: "Eve", Dialect: "other", Domain: "math", Skills: []agora.Skill{{Name: "multiply"}}, Tools: []agora.Skill{
			{Name: "sum", Schema: []byte(`{"type":"object","properties":{"of":{"type":"array","items":{"type":"number"}}},"required":["of"]}`)},
		}},
	} {
		if _, err := who.Register(t.Context(), a, 0); err != nil {
			t.Fatal(err)
		}
	}
	bob = agoratest.Connect(t, agoratest.Direct{}, s.Cluster.URL(1), "", nil)
	bob.Send(`{"type":"agent.register","agent":{"id":"bob","skills":[{"name":"translate","description":"from French"}]}}`)
	bob.Expect(`{"type":"agent.registered"}`)
	return bob
}

// TestVectors plays every vector over each version of HTTP.
func TestVectors(t *testing.T) {
	t.Parallel()
	s := serve(t, agoratest.Start(t, agoratest.Options{Edges: 2}))
	bob := populate(t, s)
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(b, &v); err != nil || v.About == "" || v.Status == 0 {
			t.Fatalf("%s: %v, or it lacks about or status", file, err)
		}
		for version, c := range map[string]*http.Client{"HTTP/1.1": s.one, "HTTP/2": s.two} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+version, func(t *testing.T) { v.plays(t, s.Server.URL, c, bob) })
		}
	}
}
