package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

func TestTheProtocolIsShownWithTheLimitsOfTheEdge(t *testing.T) {
	t.Parallel()
	s := serve(t, agoratest.Start(t, agoratest.Options{Edges: 1}))
	r, err := s.one.Get(s.Server.URL + "/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || len(b) > 256<<10 {
		t.Fatalf("%s, %v, %d bytes", r.Status, err, len(b))
	}
	var doc struct {
		AsyncAPI   string
		Components struct {
			Messages map[string]struct {
				Payload struct {
					Properties map[string]struct{ MaxLength int }
				}
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	join := doc.Components.Messages["space-join-fromClient"]
	if doc.AsyncAPI != "3.0.0" || join.Payload.Properties["space"].MaxLength != 77 {
		t.Errorf("AsyncAPI %q, a space has %+v", doc.AsyncAPI, join.Payload.Properties["space"])
	}
	if len(doc.Components.Messages["space-list-fromServer"].Payload.Properties) == 0 {
		t.Error("a frame of the edge is missing")
	}
}

func TestTheProtocolIsSentOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, agoratest.Start(t, agoratest.Options{Edges: 1}))
	ask := func(c *http.Client, method, had string) (*http.Response, int) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, s.Server.URL+"/asyncapi.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		if had != "" {
			q.Header.Set("If-None-Match", had)
		}
		r, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r, len(b)
	}
	for _, c := range []*http.Client{s.one, s.two} {
		first, n := ask(c, http.MethodGet, "")
		tag := first.Header.Get("ETag")
		if n == 0 || len(tag) < 3 || first.Header.Get("Cache-Control") != "private, no-cache" {
			t.Fatalf("%d bytes, ETag %q, Cache-Control %q", n, tag, first.Header.Get("Cache-Control"))
		}
		for _, at := range []struct {
			method, had string
			status      int
			body        bool
		}{
			{http.MethodGet, tag, http.StatusNotModified, false},
			{http.MethodGet, `"another", W/` + tag, http.StatusNotModified, false},
			{http.MethodGet, "*", http.StatusNotModified, false},
			{http.MethodHead, tag, http.StatusNotModified, false},
			{http.MethodHead, "", http.StatusOK, false},
			{http.MethodGet, `"another"`, http.StatusOK, true},
		} {
			if r, n := ask(c, at.method, at.had); r.StatusCode != at.status || (n > 0) != at.body || r.Header.Get("ETag") != tag {
				t.Errorf("%s with %s: %s, %d bytes, ETag %q", at.method, at.had, r.Status, n, r.Header.Get("ETag"))
			}
		}
	}
}
