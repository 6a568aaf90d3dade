package web

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

func TestAConnectionIsKeptWhereTheBodyOfWhatIsRefusedWasRead(t *testing.T) {
	s := serve(t, Config{Body: 10}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"POST": func(x *Exchange) error { _, err := x.JSON(); return err }})
	for _, at := range []struct {
		about, path, body string
		headers           []string
		closed            bool
	}{
		{"no JSON", "/it", `{`, nil, false}, {"too large", "/it", `"123456789"`, nil, false}, {"much too large", "/it", strings.Repeat(" ", 1<<10), nil, true},
		{"another type", "/it", `1`, []string{"Content-Type", "text/plain"}, true}, {"no token", "/it", `1`, []string{"Authorization", ""}, true},
		{"no path", "/nowhere", `1`, nil, true},
	} {
		r := s.ask(t, s.one, "POST", at.path, at.body, at.headers...)
		if text(t, r); r.StatusCode < 400 || r.Close != at.closed {
			t.Errorf("%s: %d, and closed is %v, want %v", at.about, r.StatusCode, r.Close, at.closed)
		}
		kept := false
		again, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(c httptrace.GotConnInfo) { kept = c.Reused },
		}), http.MethodPost, s.URL+"/it", strings.NewReader(`1`))
		if err != nil {
			t.Fatal(err)
		}
		again.Header.Set("Authorization", "Bearer "+goodToken)
		if r, err = s.one.Do(again); err != nil || r.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: then %v, %v", at.about, r, err)
		}
		if r.Body.Close(); kept == at.closed {
			t.Errorf("%s: the connection is used again: %v", at.about, kept)
		}
	}
}

// What editors and other libraries write of a text that is UTF-8 changes nothing.
func TestABodyMaySayInItsOwnWayThatItIsUTF8(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"POST": func(x *Exchange) error {
		b, err := x.JSON()
		if err != nil {
			return err
		}
		return x.Answer(200, json.RawMessage(b))
	}})
	s.each(func(t *testing.T, c *http.Client) {
		for _, at := range []struct {
			media, body string
			status      int
		}{
			{"application/json", "\xEF\xBB\xBF{}", 200}, {"application/json; charset=utf-8", "{}", 200}, {"application/json; charset=UTF8", "{}", 200},
			{`Application/JSON;charset="utf8"`, "\xEF\xBB\xBF{}", 200}, {"application/json; charset=latin1", "{}", 415},
			{"application/json", "\xEF\xBB\xBF\xEF\xBB\xBF{}", 400}, {"application/json", "\xFE\xFF\x00{", 400},
		} {
			r := s.ask(t, c, "POST", "/it", at.body, "Content-Type", at.media)
			if got := text(t, r); r.StatusCode != at.status || at.status == 200 && strings.TrimSpace(got) != "{}" {
				t.Errorf("%s, %q: %d %s, want %d", at.media, at.body, r.StatusCode, got, at.status)
			}
		}
	})
}

func TestABodyThatDoesNotComeIsGivenUp(t *testing.T) {
	s := serve(t, Config{BodyTime: 50 * time.Millisecond}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"POST": func(x *Exchange) error { _, err := x.JSON(); return err }})
	s.each(func(t *testing.T, c *http.Client) {
		never, end := io.Pipe()
		t.Cleanup(func() { end.Close() })
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/it", never)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+goodToken)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := text(t, resp); resp.StatusCode != 408 || got != refusal("TIMEOUT", "the body did not come in time") {
			t.Errorf("answered %d %s, want 408", resp.StatusCode, got)
		}
	})
	await.True(t, "nothing is left of them", func() bool { return s.kit.stats.Open.Load() == 0 })
}
