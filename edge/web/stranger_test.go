package web

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
)

// firstWord finds the token as the first word of a body.
type firstWord struct{}

func (firstWord) Scan() Scanner { return firstWord{} }

func (firstWord) Read(_ *Exchange, head []byte, whole bool) error {
	if whole && string(head) == "broken" {
		return agora.Errorf(agora.InvalidRequest, "the body is broken")
	}
	return nil
}

func (firstWord) Next(head []byte) (string, bool) {
	word, _, is := bytes.Cut(head, []byte(" "))
	if !is {
		return "", false
	}
	return string(word), len(word) == 0
}

// tokenInBody has a path answer with the size of its body, and with the sizes of what was read before.
func (s *site) tokenInBody() {
	s.kit.HandlePath(s.mux, "/it", Path{
		Methods: Methods{"POST": func(x *Exchange) error {
			b, err := x.BodyUpTo(1 << 20)
			if err != nil {
				return err
			}
			return x.Answer(200, len(b))
		}},
		Head: firstWord{},
		Fault: func(r *http.Request, err error, e *agora.Error) (string, []byte) {
			return "text/fault", []byte(string(e.Code))
		},
	})
}

func TestATokenMayStandInTheBeginningOfTheBody(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.tokenInBody()
	s.each(func(t *testing.T, c *http.Client) {
		for _, at := range []struct {
			about, body, header string
			status              int
			want                string
		}{
			{"it is good", goodToken + " x", "", 200, "11\n"}, {"much comes behind it", goodToken + strings.Repeat(" ", 500_000), "", 200, "500009\n"},
			{"it is bad", "bad x", "", 401, "UNAUTHORIZED"}, {"it has no end", goodToken, "", 401, "UNAUTHORIZED"}, {"there is none", " x", "", 401, "UNAUTHORIZED"},
			{"it is broken", "broken", "", 400, "INVALID_REQUEST"}, {"no body", "", "", 401, "UNAUTHORIZED"}, {"that of the header is good", "bad x", "Bearer " + goodToken, 200, "5\n"},
			{"that of the header is bad", goodToken + " x", "Bearer bad", 401, "UNAUTHORIZED"},
			{"too large", goodToken + strings.Repeat(" ", 1<<20), "", 413, "MESSAGE_TOO_LARGE"},
		} {
			r := s.ask(t, c, "POST", "/it", at.body, "Authorization", at.header)
			if got := text(t, r); r.StatusCode != at.status || got != at.want {
				t.Errorf("%s: %d %q, want %d %q", at.about, r.StatusCode, got, at.status, at.want)
			}
		}
	})
	await.True(t, "no stranger is left", func() bool {
		return s.kit.node.strangers.Held() == 0 && s.kit.node.strangers.Stats().Places.Load() == 0
	})
}

// begun is a request whose body does not come to its end.
type begun struct {
	*io.PipeWriter                     // its rest
	answer         chan *http.Response // nil where it has none
}

// status returns what it is answered; 0 for nothing.
func (b begun) status() int {
	select {
	case r := <-b.answer:
		if r != nil {
			return r.StatusCode
		}
	case <-time.After(await.Long):
	}
	return 0
}

// begin sends the beginning of a body whose rest does not come.
func (s *site) begin(t *testing.T, c *http.Client, path, beginning string, headers ...string) begun {
	t.Helper()
	rest, more := io.Pipe()
	t.Cleanup(func() { more.Close() })
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, io.MultiReader(strings.NewReader(beginning), rest))
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(headers); k += 2 {
		r.Header.Set(headers[k], headers[k+1])
	}
	answer := make(chan *http.Response, 1)
	go func() {
		resp, err := c.Do(r)
		if err == nil {
			t.Cleanup(func() { resp.Body.Close() })
		}
		answer <- resp
	}()
	return begun{more, answer}
}

// Anyone who speaks is asked before the rest of the body is read, and nothing of it where the path looks for no token
// there.
func TestWhoSpeaksIsAskedBeforeTheBodyIsRead(t *testing.T) {
	s := serve(t, Config{BodyTime: time.Hour}, node{}, 0)
	s.tokenInBody()
	s.kit.Handle(s.mux, "/header", Methods{"POST": func(x *Exchange) error { _, err := x.Body(); return err }})
	s.each(func(t *testing.T, c *http.Client) {
		for about, at := range map[string]struct {
			path, begins string
			headers      []string
		}{
			"a bad token":                  {"/it", "bad ", nil},
			"none in the first 16 KiB":     {"/it", strings.Repeat("x", headSize), nil},
			"a bad token in the header":    {"/it", "", []string{"Authorization", "Bearer bad"}},
			"a path that takes no token":   {"/header", "", nil},
			"such a one, with a bad token": {"/header", "x", []string{"Authorization", "Bearer bad"}},
		} {
			if got := s.begin(t, c, at.path, at.begins, at.headers...).status(); got != 401 {
				t.Errorf("%s: %d, want 401", about, got)
			}
		}
	})
}

func TestStrangersBodiesAreBounded(t *testing.T) {
	for about, at := range map[string]struct {
		cfg    admission.StrangersConfig
		status int // of the first of two requests whose bodies don't end
	}{
		"in their time":   {admission.StrangersConfig{Within: 50 * time.Millisecond}, 408},
		"in their number": {admission.StrangersConfig{Places: 1, Within: time.Hour}, 503},
		"in their bytes":  {admission.StrangersConfig{Bytes: 15 << 10, Within: time.Hour}, 503},
	} {
		strangers := admission.NewStrangers(at.cfg)
		s := serve(t, Config{BodyTime: time.Hour}, node{strangers: strangers}, 0)
		s.tokenInBody()
		s.each(func(t *testing.T, c *http.Client) {
			first := s.begin(t, c, "/it", strings.Repeat("x", 10<<10))
			await.True(t, "the first is there", func() bool {
				return strangers.Stats().Entered.Load()%2 == 1 && (strangers.Held() == 10<<10 || at.status == 408)
			})
			second := s.begin(t, c, "/it", strings.Repeat("x", 10<<10))
			if got := first.status(); got != at.status {
				t.Errorf("%s: %d, want %d", about, got, at.status)
			}
			second.CloseWithError(io.ErrUnexpectedEOF)
			second.status()
			await.True(t, "none is left", func() bool {
				return strangers.Held() == 0 && strangers.Stats().Places.Load() == 0 && strangers.Stats().Entered.Load()%2 == 0
			})
		})
	}
}

// Bodies of the one who has credentials count from the first byte on, and the one that would be too much is refused.
func TestBodiesCountFromTheirFirstByte(t *testing.T) {
	usage := admission.NewUsage(admission.NewLiveLimits(admission.Limits{Queued: 8 << 20}))
	s := serve(t, Config{BodyTime: time.Hour, Body: 1 << 20}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"POST": func(x *Exchange) error {
		x.kept.Owned(usage, admission.Owner{Tenant: "t", Principal: "p"})
		_, err := x.Body()
		return err
	}})
	s.each(func(t *testing.T, c *http.Client) {
		var all []begun
		for range 6 {
			all = append(all, s.begin(t, c, "/it", strings.Repeat(" ", 512<<10), "Authorization", "Bearer "+goodToken))
		}
		await.True(t, "they count", func() bool { return usage.All(admission.RequestBytes) == 6*512<<10 })
		if got := s.begin(t, c, "/it", strings.Repeat(" ", 512<<10), "Authorization", "Bearer "+goodToken).status(); got != 429 {
			t.Errorf("one more: %d, want 429", got)
		}
		for _, one := range all {
			one.CloseWithError(io.ErrUnexpectedEOF)
			one.status()
		}
		await.True(t, "nothing is kept", func() bool { return usage.All(admission.RequestBytes) == 0 })
	})
}
