package sidecar_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// TestNothingButThePathsOfTheCardIsReached has callers look for ways around it: to other paths of the agent, and to a
// server that they have no business with.
func TestNothingButThePathsOfTheCardIsReached(t *testing.T) {
	t.Parallel()
	var strays atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strays.Add(1) }))
	t.Cleanup(other.Close)
	host := strings.TrimPrefix(other.URL, "http://")
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, func(c *sidecar.Config) { c.Deliver = "/in" })
	c := s.calls(direct)

	type try struct{ method, path, name string }
	tries := []try{
		{"POST", "/card", ""}, {"GET", "/card/", ""}, {"GET", "//card/../secret", ""}, {"GET", "/Card", ""}, {"GET", "/card?x=1", ""}, {"GET", "/card#x", ""},
		{"GET", "/greet/x", ""}, {"CONNECT", host, ""}, {"CONNECT", "/greet/x", ""}, {"TRACE", "/slow", ""}, {"OPTIONS", "*", ""}, {"P OST", "/greet/x", ""}, {"POST\r\nX: y", "/greet/x", ""},
	}
	for _, path := range []string{
		"/", "", "/in", "/secret", "/greet", "/greet/", "/greet//", "/greet/x/y", "/greet/x/..", "/greet/../secret", "/greet/..", "/greet/.", "/greet/%2e%2e", "/greet/%2E%2E/secret",
		"/greet/..%2fsecret", "/greet/..%2Fsecret", "/greet/..%5csecret", `/greet/..\secret`, "/greet/x%00", "/greet/x\r\nHost: y", "/greet/x%0d%0aHost:%20y", "/greet/%", "/greet/%zz", "/greet/x?y=z", "/greet/x#y",
		"/greet/%252e%252e/%2e%2e/secret", "/./secret", "/../secret", "/%2e%2e/secret", "/greet/x;/../../secret", "/GREET/x", "/greet\t/x", "/greet/{name}/../secret", "/{x}/secret", "/{name}", "/greet/{other}", "/greet/{name}{name}",
		other.URL, other.URL + "/greet/x", "//" + host + "/greet/x", "///" + host, "\\\\" + host, "/\\" + host, "@" + host + "/greet/x", ":80@" + host, "http:" + host, "http:/" + host, "/http://" + host,
		"/greet/x@" + host + "/..", "https://" + host, "ftp://" + host, "file:///etc/passwd", "/tools/", "/tools/secret", "/tools/../secret", "/tools/greet/x", "/agents/plain/secret", "/tools/%2e%2e",
	} {
		tries = append(tries, try{"POST", path, "x"})
	}
	for _, name := range []string{"", ".", "..", "../secret", "a/b", "/secret", `..\secret`, "%2e%2e/secret", "x\x00", "x\r\nHost: y", "../../secret?", "//" + host} {
		tries = append(tries, try{"POST", "/greet/{name}", name})
	}
	if len(tries) < 60 {
		t.Fatalf("%d tries are too few", len(tries))
	}
	for _, one := range tries {
		params := map[string]any{"name": one.name, "x": "greet", "host": host, "scheme": other.URL}
		request, err := json.Marshal(map[string]any{"method": one.method, "path": one.path, "params": params, "input_data": "x"})
		if err != nil {
			t.Fatal(err)
		}
		before := p.asked.Load()
		got, err := c.hands(string(request))
		f, is := wire.ParseFault([]byte(got))
		if err != nil || !is || f.Code < 400 || f.Code > 405 {
			// What is escaped is a name like any other.
			if strings.Contains(got, `"hello":`) && !strings.Contains(got, "secret\"") {
				t.Logf("%q with %q is a name: %s", one.path, one.name, got)
				continue
			}
			t.Errorf("%s %q with %q: answered %q %v, want a failure", one.method, one.path, one.name, got, err)
		}
		if n := p.asked.Load(); n != before {
			t.Errorf("%s %q with %q: the agent was asked", one.method, one.path, one.name)
		}
	}
	if strays.Load() > 0 {
		t.Error("another server was asked")
	}
	await.True(t, "the agent itself is asked", func() bool {
		got, _ := c.hands(`{"method":"POST","path":"/greet/x"}`)
		return strings.Contains(got, `"hello":"x"`)
	})
}

func TestWhatIsNoAddressOfAnAgentIsRefused(t *testing.T) {
	t.Parallel()
	for _, cfg := range []sidecar.Config{
		{}, {Agent: "127.0.0.1:8000"}, {Agent: "ftp://x"}, {Agent: "http://"}, {Agent: "http://u:p@x"}, {Agent: "http://x?y"}, {Agent: "http://x#y"}, {Agent: "http://x\x00"},
		{Agent: "http://x", Deliver: "in"}, {Agent: "http://x", Deliver: "http://y/in"}, {Agent: "http://x", Deliver: "//y/in"}, {Agent: "http://x", Deliver: "/in#x"},
	} {
		if _, err := sidecar.New(cfg); err == nil {
			t.Errorf("agent %q and path %q are taken", cfg.Agent, cfg.Deliver)
		}
	}
}
