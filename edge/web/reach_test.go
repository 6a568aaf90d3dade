package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestThePeersSystemAcknowledgesWhatWasWritten(t *testing.T) {
	reached := make(chan Reach, 1)
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": func(x *Exchange) error {
		if _, err := x.Events(); err != nil {
			return err
		}
		reached <- x.Reach()
		<-x.Context().Done()
		return nil
	}})
	s.each(func(t *testing.T, c *http.Client) {
		r := s.ask(t, c, "GET", "/events", "")
		reach := await.Recv(t, "the request", reached)
		written, ok := reach.Written()
		if !ok || written == 0 {
			t.Fatalf("Written = %d, %v, want more", written, ok)
		}
		await.True(t, "all is acknowledged", func() bool {
			acked, ok := reach.Acked()
			return ok && acked >= written
		})
		r.Body.Close()
	})
	if _, ok := (Reach{}).Written(); ok {
		t.Error("a connection that is not known is known")
	}
}

func TestATokenMayStandInTheBody(t *testing.T) {
	s := serve(t, Config{Body: 64}, node{}, 0)
	s.kit.HandlePath(s.mux, "/it", Path{
		Methods: Methods{"POST": func(x *Exchange) error { return x.Answer(200, x.Request.Header.Get("X-Read")) }},
		Token: func(x *Exchange) (string, error) {
			b, err := x.Body()
			x.Request.Header.Set("X-Read", string(b))
			return strings.TrimPrefix(string(b), "token "), err
		},
		Fault: func(_ *http.Request, err error, e *agora.Error) (string, []byte) {
			return "text/fault", []byte(string(e.Code))
		},
	})
	s.each(func(t *testing.T, c *http.Client) {
		for _, at := range []struct {
			body, token string
			status      int
			want        string
		}{
			{"token " + goodToken, "", 200, `"token ` + goodToken + `"` + "\n"}, {"token bad", "", 401, "UNAUTHORIZED"},
			{"token bad", "Bearer " + goodToken, 200, `""` + "\n"}, {strings.Repeat("x", 65), "", 413, "MESSAGE_TOO_LARGE"},
		} {
			r := s.ask(t, c, "POST", "/it", at.body, "Authorization", at.token)
			if got := text(t, r); r.StatusCode != at.status || got != at.want {
				t.Errorf("%q: %d %q, want %d %q", at.body, r.StatusCode, got, at.status, at.want)
			}
		}
	})
}
