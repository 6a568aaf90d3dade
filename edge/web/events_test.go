package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

func TestEventsAreLinesWhateverIsInThem(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": func(x *Exchange) error {
		e, err := x.Events()
		if err != nil {
			return err
		}
		for _, v := range []Event{
			{Data: []byte(`{"a":1}`)}, {ID: "7", Name: "part", Data: []byte("one\ntwo\r\nthree\rfour")}, {Data: []byte("\r")}, {}, {Data: []byte("data: x\n\nid: 8")},
		} {
			if err := e.Send(v); err != nil {
				return err
			}
		}
		for _, bad := range []Event{{ID: "1\n"}, {ID: "1\r"}, {ID: "\x00"}, {Name: "a\nb"}} {
			if err := e.Send(bad); err == nil {
				t.Errorf("%+v is sent", bad)
			}
		}
		return nil
	}})
	s.each(func(t *testing.T, c *http.Client) {
		r := s.ask(t, c, "GET", "/events", "")
		want := "data: {\"a\":1}\n\n" + "id: 7\nevent: part\ndata: one\ndata: two\ndata: three\ndata: four\n\n" + "data: \ndata: \n\n" + "data: \n\n" +
			"data: data: x\ndata: \ndata: id: 8\n\n"
		if got := text(t, r); got != want || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("got %q, want %q", got, want)
		}
		if r := s.ask(t, c, "HEAD", "/events", ""); r.StatusCode != 200 || text(t, r) != "" {
			t.Errorf("HEAD: %d", r.StatusCode)
		}
	})
}

func TestAQuietAnswerHasSignsOfLife(t *testing.T) {
	s := serve(t, Config{}, node{heartbeat: time.Millisecond}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": waits})
	s.each(func(t *testing.T, c *http.Client) {
		r := s.ask(t, c, "GET", "/events", "")
		said := lines(r)
		for range 3 {
			if l := await.Recv(t, "a comment", said); l != ":" {
				t.Errorf("said %q, want a comment", l)
			}
			await.Recv(t, "its end", said)
		}
		r.Body.Close()
	})
}

// waits answers with events and says none.
func waits(x *Exchange) error {
	if _, err := x.Events(); err != nil {
		return err
	}
	select {
	case <-x.Drains():
		return errGone
	case <-x.Context().Done():
		return x.Context().Err()
	}
}

// stubborn does so until its context ends.
func stubborn(x *Exchange) error {
	if _, err := x.Events(); err != nil {
		return err
	}
	<-x.Context().Done()
	return x.Context().Err()
}

func TestWhatLastsEndsWithItsCredentials(t *testing.T) {
	var taken atomic.Bool
	s := serve(t, Config{}, node{check: func(*edge.Actor) error {
		if taken.Load() {
			return agora.Errorf(agora.Unauthorized, "these credentials are revoked")
		}
		return nil
	}}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": stubborn})
	s.kit.Handle(s.mux, "/wait", Methods{"GET": func(x *Exchange) error {
		x.Last()
		<-x.Context().Done()
		return x.Context().Err()
	}})
	s.each(func(t *testing.T, c *http.Client) {
		taken.Store(false)
		r := s.ask(t, c, "GET", "/events", "")
		taken.Store(true)
		if got, want := text(t, r), "event: error\ndata: "+refusal("UNAUTHORIZED", "these credentials are revoked")+"\n"; got != want {
			t.Errorf("the last event is %q, want %q", got, want)
		}
		r = s.ask(t, c, "GET", "/wait", "")
		if got := text(t, r); r.StatusCode != 401 || got != refusal("UNAUTHORIZED", "these credentials are revoked") {
			t.Errorf("one that has not begun to answer: %d %s, want 401", r.StatusCode, got)
		}
	})
}

func TestWhatLastsEndsWhenTheEdgeDrains(t *testing.T) {
	s := serve(t, Config{DrainRate: 1000}, node{}, 0)
	s.kit.Handle(s.mux, "/waits", Methods{"GET": waits})
	s.kit.Handle(s.mux, "/stubborn", Methods{"GET": stubborn})
	s.each(func(t *testing.T, c *http.Client) {
		want := "retry: 1000\nevent: error\ndata: " + refusal("UNAVAILABLE", "the edge is going away") + "\n"
		r := s.ask(t, c, "GET", "/waits", "")
		ctx, cancel := context.WithTimeout(t.Context(), await.Long)
		defer cancel()
		s.kit.Drain(ctx)
		if got := text(t, r); got != want || ctx.Err() != nil {
			t.Errorf("one that can be asked again: %q, want %q", got, want)
		}
		r = s.ask(t, c, "GET", "/stubborn", "")
		short, cancel2 := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel2()
		s.kit.Drain(short)
		if got := text(t, r); got != want {
			t.Errorf("one that can't: %q, want %q", got, want)
		}
	})
}

func TestAClosedKitEndsEverything(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/events", Methods{"GET": stubborn})
	one, two := s.ask(t, s.one, "GET", "/events", ""), s.ask(t, s.two, "GET", "/events", "")
	s.kit.Close()
	for _, r := range []*http.Response{one, two} {
		if got := text(t, r); !strings.Contains(got, "the edge is going away") {
			t.Errorf("the last event is %q", got)
		}
	}
	if r := s.ask(t, s.one, "GET", "/events", ""); r.StatusCode != 503 {
		t.Errorf("who comes later: %d, want 503", r.StatusCode)
	}
}

func TestAnAnswerThatCanNotBeCompletedIsCutShort(t *testing.T) {
	s := serve(t, Config{}, node{}, 0)
	s.kit.Handle(s.mux, "/it", Methods{"GET": func(x *Exchange) error {
		if err := x.Answer(200, "half"); err != nil {
			return err
		}
		return errors.New("the rest is lost")
	}})
	s.each(func(t *testing.T, c *http.Client) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/it", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+goodToken)
		resp, err := c.Do(r)
		if err == nil {
			defer resp.Body.Close()
			_, err = resp.Body.Read(make([]byte, 100))
		}
		if err == nil {
			t.Error("half an answer looks like a whole one")
		}
	})
}
