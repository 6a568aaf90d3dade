package presence_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/presence"
)

func TestALeaseIsHeldUntilItLapses(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Lease: 300 * time.Millisecond})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		renew := func(want bool) {
			t.Helper()
			if held := must(s.Renew(t.Context(), h))(t); held != want {
				t.Fatalf("held = %v, want %v", held, want)
			}
		}
		alive := func() bool { return must(s.Alive(t.Context(), h))(t) }
		if alive() {
			t.Fatal("alive before its first lease")
		}
		renew(false)
		renew(true)
		if !alive() {
			t.Fatal("not alive")
		}
		eventually(t, "the lease lapses", func() bool { return !alive() })
		renew(false)
		ok(t, s.Resign(t.Context(), presence.Holder{Edge: h.Edge, Incarnation: "another life"}))
		if !alive() {
			t.Fatal("another life resigned for it")
		}
		ok(t, s.Resign(t.Context(), h))
		if alive() {
			t.Fatal("alive after it resigned")
		}
		renew(false)
		next := presence.Holder{Edge: h.Edge, Incarnation: "next life"}
		if held := must(s.Renew(t.Context(), next))(t); held || alive() {
			t.Fatalf("next life: held %v, the last one alive %v", held, alive())
		}
	})
}

func TestARenewalSentTwiceSaysTheSame(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "e", Incarnation: "i"}
		for _, c := range []struct {
			word string
			held bool
		}{{"one", false}, {"one", false}, {"two", true}, {"two", true}} {
			if held := must(presence.RenewAs(t.Context(), s, h, c.word))(t); held != c.held {
				t.Fatalf("%s: held = %v, want %v", c.word, held, c.held)
			}
		}
	})
}
