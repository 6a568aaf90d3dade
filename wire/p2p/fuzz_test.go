package p2p

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	pathpkg "path"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// FuzzRequest holds that reading never panics, that it does not matter in which pieces a stream comes, that what it takes is the JSON object that a slow reader sees,
// and that the request is there and back the same.
func FuzzRequest(f *testing.F) {
	for _, v := range load(f) {
		if v.Stream != nil || v.Base64 != nil {
			f.Add(v.stream(f))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b), 1<<20)
		slow, slowErr := Read(iotest.OneByteReader(bytes.NewReader(b)), 1<<20)
		if asJSON(t, requestOf(r)) != asJSON(t, requestOf(slow)) || (err == nil) != (slowErr == nil) {
			t.Fatalf("%q is %v, %v at once, and %v, %v byte by byte", b, r, err, slow, slowErr)
		}
		if err != nil {
			checkFault(t, err)
			return
		}
		var want struct{ Method, Path *string }
		if err := json.NewDecoder(bytes.NewReader(b)).Decode(&want); err != nil || want.Method == nil || want.Path == nil {
			t.Fatalf("took %q: %v", b, err)
		}
		for _, raw := range []json.RawMessage{r.Params, r.Input} {
			if raw != nil && (!json.Valid(raw) || !bytes.Contains(b, raw)) {
				t.Fatalf("%q has %q", b, raw)
			}
		}
		again, err := Read(bytes.NewReader(r.Append(nil)), 2<<20)
		if err != nil || asJSON(t, requestOf(again)) != asJSON(t, requestOf(r)) {
			t.Fatalf("%+v comes back as %+v, %v", r, again, err)
		}
		payload := r.AppendPayload(nil, "r")
		if told, err := FromPayload(payload); err != nil || told.Path != r.Path || told.Method != r.Method || !bytes.Equal(told.Input, r.Input) {
			t.Fatalf("%s comes back as %+v, %v", payload, told, err)
		}
		if _, arguments, called, err := r.Tool(); called && err == nil && arguments != nil && !json.Valid(arguments) {
			t.Fatalf("%q calls a tool with %q", b, arguments)
		}
		if id, inner, err := r.Target(); err == nil && (id == "" || inner.Path[0] != '/') {
			t.Fatalf("%q is for %q, %+v", b, id, inner)
		}
	})
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	f, ok := err.(*Fault)
	if !ok || Number(f.Code) != f.Code || f.Err.Message == "" {
		t.Fatalf("refused with %v", err)
	}
	told := AppendFault(nil, err)
	if again, ok := ParseFault(told); !ok || again.Code != f.Code {
		t.Fatalf("it is told as %q", told)
	}
}

// FuzzTemplate holds that what the guard lets through is below the agent's host, is clean, and has the form of the skill's path, however a server reads it: with its escapes undone
// before it is taken apart or afterwards.
func FuzzTemplate(f *testing.F) {
	for _, v := range load(f) {
		for _, s := range v.Skills {
			f.Add(s.Path, v.Request.Path, v.Request.Params)
		}
	}
	for _, s := range homeSkills {
		f.Add(s.Path, s.Path, `{"name":"../x","ext":"%2e","id":7,"post":"a\\b","q":"&x=1"}`)
		f.Add(s.Path, "/a/..%2f%252e/{name}", `{"name":"..;"}`)
	}
	f.Fuzz(func(t *testing.T, skill, asked, params string) {
		g, err := NewGuard([]Skill{{Name: "s", Path: skill}})
		if err != nil || skill == "" {
			return
		}
		r := &Request{Method: http.MethodPut, Path: asked} // no /card
		if json.Valid([]byte(params)) && utf8.ValidString(params) && strings.HasPrefix(params, "{") {
			r.Params = json.RawMessage(params)
		}
		got, err := g.Check(r)
		if err != nil {
			checkFault(t, err)
			return
		}
		checkTarget(t, skill, got)
		again, err := g.Check(&Request{Method: r.Method, Path: got.Path + "?" + got.Query})
		if err != nil && !strings.Contains(err.Error(), "an escape behind an escape") || err == nil && again.Path != got.Path {
			t.Fatalf("%q of %q is %v, and that is %v, %v", asked, skill, got, again, err)
		}
	})
}

func checkTarget(t *testing.T, skill string, got Target) {
	t.Helper()
	base := &url.URL{Scheme: "http", Host: "agent.invalid:8000"}
	whole := base.String() + got.Path + "?" + got.Query
	u, err := url.Parse(whole)
	if err != nil || u.Host != base.Host || u.User != nil || u.Fragment != "" || u.RawQuery != got.Query {
		t.Fatalf("%q is parsed as %v, %v", whole, u, err)
	}
	if v := got.URL(base); v.Host != base.Host || v.Path != u.Path || v.RequestURI() != strings.TrimSuffix(got.Path+"?"+got.Query, "?") {
		t.Fatalf("%v is sent as %q", got, v)
	}
	if clean := pathpkg.Clean(u.Path); clean != strings.TrimSuffix(u.Path, "/") && u.Path != "/" {
		t.Fatalf("%q is not clean", u.Path)
	}
	for _, c := range []byte(got.Path + got.Query) {
		if c <= ' ' || c > '~' || strings.IndexByte(`\#?"<>{}|^`+"`", c) >= 0 {
			t.Fatalf("%v has %q", got, c)
		}
	}
	form, _, _ := strings.Cut(strings.TrimLeft(skill, "/"), "?")
	if !formOf(t, form).MatchString(u.Path) {
		t.Fatalf("%q has not the form of %q", u.Path, skill)
	}
}

// formOf returns what matches paths of a skill, with their escapes undone.
func formOf(t *testing.T, skill string) *regexp.Regexp {
	t.Helper()
	var b strings.Builder
	for i, text := range regexp.MustCompile(`\{[^{}]*\}`).Split(skill, -1) {
		if i > 0 {
			b.WriteString(`[^/\\\x00-\x1f]+`)
		}
		plain, err := url.PathUnescape(text)
		must(t, err)
		b.WriteString(regexp.QuoteMeta(plain))
	}
	return regexp.MustCompile(`\A/` + b.String() + `\z`)
}

// FuzzAnswer holds that an answer is a failure exactly where a slow reader sees one.
func FuzzAnswer(f *testing.F) {
	for _, v := range load(f) {
		if v.Answer != nil {
			f.Add([]byte(*v.Answer))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := ParseFault(b)
		var members map[string]json.RawMessage
		var text string
		var code int
		want := utf8.Valid(b) && len(b) <= MaxFault && json.Unmarshal(b, &members) == nil && len(members) == 2 && len(members["error"]) > 0 && members["error"][0] == '"' &&
			json.Unmarshal(members["error"], &text) == nil && json.Unmarshal(members["code"], &code) == nil && code >= 400 && code < 600
		if ok && !want {
			t.Fatalf("%q is the failure %v", b, got)
		}
		if ok && (got.Err.Message != text || got.Code != code) {
			t.Fatalf("%q is %v, want %d: %q", b, got, code, text)
		}
		if want && !ok && bytes.Count(b, []byte(":")) == 2 && !bytes.Contains(b, []byte(`\`)) {
			t.Fatalf("%q is no failure", b)
		}
	})
}

// FuzzCard holds that reading a card never panics, and that what is read of it may be registered.
func FuzzCard(f *testing.F) {
	for _, v := range load(f) {
		if v.Card != nil {
			f.Add([]byte(*v.Card))
		}
		if v.Shown != "" {
			f.Add([]byte(v.Shown))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ReadCard(b, 1<<16)
		if err != nil {
			checkFault(t, err)
			return
		}
		a := c.Agent("al")
		if err := a.Check(1 << 20); err != nil {
			t.Fatalf("%q may not be registered: %v", b, err)
		}
		if shown := AppendCard(nil, &a); !json.Valid(shown) || !utf8.Valid(shown) {
			t.Fatalf("%q is shown as %q", b, shown)
		}
		if g, _ := NewGuard(c.Skills); len(g.routes) == 0 {
			t.Fatal("the guard has no card")
		}
	})
}

// FuzzProof holds that reading a proof never panics nor takes more than it may, and that what it takes is there and back the same.
func FuzzProof(f *testing.F) {
	for _, v := range load(f) {
		if v.Proof != "" {
			f.Add([]byte(v.Proof))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadProof(b)
		if err != nil {
			if agora.AsError(err).Code != agora.InvalidRequest {
				t.Fatalf("%q is refused with %v", b, err)
			}
			return
		}
		if p.Edge == "" || p.Time <= 0 || len(p.Signature) == 0 || len(p.Signature) > maxSignature || len(p.PublicKey) > maxKey {
			t.Fatalf("%q is taken as %+v", b, p)
		}
		again, err := ReadProof([]byte(asJSON(t, p)))
		if err != nil || asJSON(t, again) != asJSON(t, p) {
			t.Fatalf("%+v comes back as %+v, %v", p, again, err)
		}
		one := Binding{Tenant: "a", Agent: "b", Edge: p.Edge, Peer: "c", Time: p.Time}
		other := Binding{Tenant: "a\nb", Agent: "b", Edge: p.Edge, Peer: "c", Time: p.Time}
		if bytes.Equal(one.Statement(), other.Statement()) {
			t.Fatalf("two bindings at %q have one statement", p.Edge)
		}
	})
}
