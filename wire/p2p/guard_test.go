package p2p

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// homeSkills are those that the ways around try to leave.
var homeSkills = []Skill{
	{Name: "greet", Path: "/greet/{name}", Methods: []string{"GET"}},
	{Name: "file", Path: "/files/{name}.{ext}", Methods: []string{"GET", "PUT"}},
	{Name: "post", Path: "/users/{id}/posts/{post}"},
	{Name: "search", Path: "/search?q={q}&max=10", Methods: []string{"GET"}},
	{Name: "own", Path: "/status", Methods: []string{"GET"}},
}

// TestNoWayAroundTheGuard has paths and values that are meant to reach what no skill has.
func TestNoWayAroundTheGuard(t *testing.T) {
	g, err := NewGuard(homeSkills)
	must(t, err)
	ways := []struct {
		method, path, params string
		want                 int
	}{
		// another host
		{"GET", "http://evil.example/status", "", 400},
		{"GET", "//evil.example/status", "", 404},
		{"GET", "///evil.example//status", "", 400},
		{"GET", "http:/evil.example/status", "", 404},
		{"GET", "http:status", "", 404},
		{"GET", "file:///etc/passwd", "", 400},
		{"GET", "@evil.example/status", "", 404},
		{"GET", "user:pass@evil.example", "", 404},
		{"GET", ":80@evil.example/", "", 404},
		{"GET", ".evil.example/status", "", 404},
		{"GET", `\\evil.example\status`, "", 400},
		{"GET", `/\evil.example/status`, "", 400},
		{"GET", "/%5cevil.example/status", "", 400},
		{"GET", "/%2f%2fevil.example/status", "", 400},
		{"GET", "/{a}", `{"a":"//evil.example"}`, 404},
		{"GET", "{a}/status", `{"a":"http://evil.example"}`, 404},
		{"GET", "/greet/{name}", `{"name":"//evil.example"}`, 400},
		{"GET", "/greet/{name}", `{"name":"http://evil.example"}`, 400},
		// dots
		{"GET", "/..", "", 400},
		{"GET", "/../admin", "", 400},
		{"GET", "/greet/..", "", 400},
		{"GET", "/greet/.", "", 400},
		{"GET", "/greet/../admin", "", 400},
		{"GET", "/./status", "", 400},
		{"GET", "/greet/x/../../status", "", 400},
		{"GET", "/greet/%2e%2e", "", 400},
		{"GET", "/greet/%2E.", "", 400},
		{"GET", "/greet/.%2e", "", 400},
		{"GET", "/greet/%2e", "", 400},
		{"GET", "/greet/..;", "", 400},
		{"GET", "/greet/..;x=y", "", 400},
		{"GET", "/greet/..%3bx", "", 400},
		{"GET", "/greet/{name}", `{"name":".."}`, 400},
		{"GET", "/greet/{name}", `{"name":"."}`, 400},
		{"GET", "/greet/{name}", `{"name":"..;x"}`, 400},
		{"GET", "/greet/{name}", `{"name":"../admin"}`, 400},
		{"GET", "/greet/{name}", `{"name":"x/../../admin"}`, 400},
		{"GET", "/greet/{name}", `{"name":"..\\admin"}`, 400},
		{"GET", "/{up}/admin", `{"up":".."}`, 404},
		{"GET", "/greet/{name}/../admin", `{"name":"x"}`, 400},
		{"GET", "/users/{id}/posts/{post}", `{"id":"..","post":".."}`, 400},
		{"GET", "/files/{name}.{ext}", `{"name":".","ext":"/x"}`, 400},
		{"GET", "/files/..", "", 400},
		// slashes in other clothes
		{"GET", "/greet/a%2fb", "", 400},
		{"GET", "/greet/a%2Fb", "", 400},
		{"GET", "/greet%2fa", "", 400},
		{"GET", "/greet/a%5cb", "", 400},
		{"GET", `/greet/a\b`, "", 400},
		{"GET", "/greet//a", "", 400},
		{"GET", "/greet/a//", "", 400},
		{"GET", "/greet/a%c0%af", "", 400},
		{"GET", "/greet/%c0%ae%c0%ae", "", 400},
		{"GET", "/greet/{name}", `{"name":"a/b"}`, 400},
		{"GET", "/greet/{name}", `{"name":"/"}`, 400},
		{"GET", "/greet/{name}", `{"name":"a\\b"}`, 400},
		{"GET", "/users/{id}", `{"id":"7/posts/1"}`, 404},
		{"GET", "/users/{id}/posts/{post}", `{"id":"7/posts/1","post":"2"}`, 400},
		// escapes behind escapes, and those that are none
		{"GET", "/greet/%252e%252e", "", 400},
		{"GET", "/greet/%252fadmin", "", 400},
		{"GET", "/greet/%25252e", "", 400},
		{"GET", "/greet/%u002e", "", 400},
		{"GET", "/greet/%", "", 400},
		{"GET", "/greet/%2", "", 400},
		{"GET", "/greet/%zz", "", 400},
		// control characters
		{"GET", "/greet/a\x00b", "", 400},
		{"GET", "/greet/a%00", "", 400},
		{"GET", "/greet/a\r\nHost: evil.example", "", 400},
		{"GET", "/greet/a%0d%0aHost:%20evil.example", "", 400},
		{"GET", "/greet/a\tb", "", 400},
		{"GET", "/greet/a%7f", "", 400},
		{"GET", "/greet/%c2%85", "", 400},
		{"GET", "/status HTTP/1.1\r\nX: y", "", 400},
		{"GET", "/greet/{name}", `{"name":"a\u0000"}`, 400},
		{"GET", "/greet/{name}", `{"name":"a\r\nX: y"}`, 400},
		{"GET", "/search?q={q}&max=10", `{"q":"a\nb"}`, 400},
		// queries and fragments
		{"GET", "/status?admin=1", "", 404},
		{"GET", "/greet/a?admin=1", "", 404},
		{"GET", "/greet/a#b", "", 400},
		{"GET", "/status#", "", 400},
		{"GET", "/search", "", 404},
		{"GET", "/search?q=a", "", 404},
		{"GET", "/search?q=a&max=11", "", 404},
		{"GET", "/search?max=10&q=a", "", 404},
		{"GET", "/search?q=a&max=10&max=99", "", 404},
		{"GET", "/search?q=a&q=b&max=10", "", 404},
		{"GET", "/search?q=a;x=y&max=10", "", 400},
		{"GET", "/search?q=a?x&max=10", "", 400},
		{"GET", "/search?q=a&max=10#x", "", 400},
		{"GET", "/search?&q=a&max=10", "", 400},
		{"GET", "/search?{q}=a&max=10", `{"q":"q"}`, 400},
		{"GET", "/search?q=%2500&max=10", "", 400},
		{"GET", "/search%3fq=a&max=10", "", 404},
		// braces
		{"GET", "/greet/{", "", 400},
		{"GET", "/greet/}", "", 400},
		{"GET", "/greet/{}", `{"":"x"}`, 400},
		{"GET", "/greet/{{name}}", `{"name":"x"}`, 400},
		{"GET", "/greet/{name!r}", `{"name":"x"}`, 400},
		{"GET", "/greet/{name.__class__}", `{"name":"x"}`, 400},
		{"GET", "/greet/{name[0]}", `{"name":"x"}`, 400},
		{"GET", "/greet/{name:>99}", `{"name":"x"}`, 400},
		{"GET", "/greet/{0}", `{"0":"x"}`, 400},
		{"GET", "/{a}{b}", `{"a":"sta","b":"tus"}`, 400},
		{"GET", "/{all}", `{"all":"status"}`, 404},
		{"GET", "/gr{x}/a", `{"x":"eet"}`, 404},
		{"GET", "/users/{id}/{what}/1", `{"id":"7","what":"posts"}`, 404},
		// what is near to a path of a skill
		{"GET", "/", "", 404},
		{"GET", "", "", 404},
		{"GET", "/Status", "", 404},
		{"GET", "/status/", "", 404},
		{"GET", "/status ", "", 404},
		{"GET", "/status.json", "", 404},
		{"GET", "/status;x=y", "", 404},
		{"GET", "/ｓtatus", "", 404},
		{"GET", "/greet/", "", 404},
		{"GET", "/greet/a/b", "", 404},
		{"GET", "/card/", "", 404},
		{"GET", "/card/x", "", 404},
		{"GET", "/card?x", "", 404},
		{"GET", "/files/.env", "", 404},
		{"GET", "/files/passwd", "", 404},
		{"GET", "/" + strings.Repeat("a", MaxPath), "", 400},
		{"GET", "/greet/{name}", `{"name":"` + strings.Repeat("é", MaxPath/4) + `"}`, 400},
		// methods
		{"POST", "/card", "", 405},
		{"HEAD", "/card", "", 405},
		{"POST", "/greet/a", "", 405},
		{"DELETE", "/files/a.txt", "", 405},
		{"CONNECT", "/users/1/posts/2", "", 405},
		{"TRACE", "/users/1/posts/2", "", 405},
		{"PROPFIND", "/users/1/posts/2", "", 405},
		{"POST", "/nowhere", "", 404},
	}
	for _, w := range ways {
		r := Request{Method: w.method, Path: w.path}
		if w.params != "" {
			r.Params = json.RawMessage(w.params)
		}
		got, err := g.Check(&r)
		if f, ok := err.(*Fault); !ok || f.Code != w.want {
			t.Errorf("%s %.60q with %.60s gives %v, %v, want %d", w.method, w.path, w.params, got, err, w.want)
		}
	}
	if len(ways) < 60 {
		t.Errorf("there are %d ways", len(ways))
	}
}

// TestWhatPassesIsAskedOfTheAgent sends what the guard lets through to a server, and has that see the path that was meant.
func TestWhatPassesIsAskedOfTheAgent(t *testing.T) {
	var uri, host string
	agent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { uri, host = r.RequestURI, r.Host }))
	defer agent.Close()
	g, err := NewGuard(homeSkills)
	must(t, err)
	for _, c := range []struct{ path, params, want string }{
		{"/greet/{name}", `{"name":"evil.example:80@x?y#z;%2e%2e"}`, "/greet/evil.example%3A80%40x%3Fy%23z%3B%252e%252e"},
		{"/greet/{name}", `{"name":"..."}`, "/greet/..."},
		{"/greet/{name}", `{"name":"{name}"}`, "/greet/%7Bname%7D"},
		{"/greet/%7Bname%7D", "", "/greet/%7Bname%7D"},
		{"/greet/http:", "", "/greet/http%3A"},
		{"greet/a", "", "/greet/a"},
		{"/files/...", "", "/files/..."},
		{"/files/a.b.c", "", "/files/a.b.c"},
		{"/search?q={q}&max=10", `{"q":"../a\\b?c=d"}`, "/search?q=..%2Fa%5Cb%3Fc%3Dd&max=10"},
		{"/card", "", "/card"},
		{"/card?", "", "/card"},
	} {
		q := &Request{Method: "GET", Path: "/" + strings.TrimLeft(c.path, "/")}
		if c.params != "" {
			q.Params = json.RawMessage(c.params)
		}
		target, err := g.Check(q)
		must(t, err)
		for _, below := range []string{"", "/", "/api", "/api/v%201/"} {
			base, err := url.Parse(agent.URL + below)
			must(t, err)
			res, err := agent.Client().Do((&http.Request{Method: target.Method, URL: target.URL(base)}).WithContext(t.Context()))
			must(t, err)
			must(t, res.Body.Close())
			same(t, "what is asked for "+c.path, uri, strings.TrimRight(below, "/")+c.want)
			same(t, "the host", host, base.Host)
		}
	}
}

func TestSkillsWhosePathIsNoneAreNamedAndCannotBeAsked(t *testing.T) {
	g, err := NewGuard([]Skill{
		{Name: "up", Path: "/../x"}, {Name: "there", Path: "http://host/there"}, {Name: "raw", Path: "/raw/{}"}, {Name: "tunnel", Path: "/tunnel", Methods: []string{"connect"}},
		{Name: "odd", Path: "/odd", Methods: []string{""}}, {Name: "none"}, {Name: "good", Path: "good"},
	})
	if err == nil {
		t.Fatal("all are good")
	}
	for _, name := range []string{"up", "there", "raw", "tunnel", "odd"} {
		if !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%s is not named by %v", name, err)
		}
		if target, err := g.Check(&Request{Method: "GET", Path: "/" + name}); err == nil {
			t.Errorf("%s is asked as %v", name, target)
		}
	}
	if _, err := g.Check(&Request{Method: "DELETE", Path: "/good"}); err != nil {
		t.Error(err)
	}
}
