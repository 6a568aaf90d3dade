package presence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestALeaseLapses(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Lease: 100 * time.Millisecond})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		renewed(t, s, h)
		await.True(t, "the lease lapses", func() bool { return !must(s.Leases.Alive(t.Context(), h))(t) })
		if must(s.Leases.Renew(t.Context(), h, ""))(t) {
			t.Fatal("a lease that had lapsed was held")
		}
	})
}

// A renewal that arrives once the lease has lapsed finds it gone, and leaves it so.
func TestALateRenewalWritesNoLease(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		renewed(t, s, h)
		if !must(s.Leases.Extend(t.Context(), h))(t) {
			t.Fatal("a lease that is there was not renewed")
		}
		ok(t, s.Leases.Resign(t.Context(), h))
		if must(s.Leases.Extend(t.Context(), h))(t) || must(s.Leases.Alive(t.Context(), h))(t) {
			t.Fatal("a late renewal wrote the lease again")
		}
		next := presence.Holder{Edge: h.Edge, Incarnation: "next life"}
		renewed(t, s, next)
		_, err := s.Leases.Extend(t.Context(), h)
		if e, is := errors.AsType[*presence.TakenError](err); !is || e.By != next {
			t.Fatalf("renewed while another life has it: %v", err)
		}
	})
}

func TestALeaseIsHeldUntilItsHolderResigns(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		renew := func(want bool) {
			t.Helper()
			if held := must(s.Leases.Renew(t.Context(), h, ""))(t); held != want {
				t.Fatalf("held = %v, want %v", held, want)
			}
		}
		alive := func() bool { return must(s.Leases.Alive(t.Context(), h))(t) }
		if alive() {
			t.Fatal("alive before its first lease")
		}
		renew(false)
		renew(true)
		if !alive() {
			t.Fatal("not alive")
		}
		ok(t, s.Leases.Resign(t.Context(), presence.Holder{Edge: h.Edge, Incarnation: "another life"}))
		if !alive() {
			t.Fatal("another life resigned for it")
		}
		ok(t, s.Leases.Resign(t.Context(), h))
		if alive() {
			t.Fatal("alive after it resigned")
		}
		renew(false)
		next := presence.Holder{Edge: h.Edge, Incarnation: "next life"}
		_, err := s.Leases.Renew(t.Context(), next, "a life before")
		if e, ok := errors.AsType[*presence.TakenError](err); !ok || e.By != h || !alive() {
			t.Fatalf("next life: %v, the last one alive %v, want its lease untouched", err, alive())
		}
		if held := must(s.Leases.Renew(t.Context(), next, h.Incarnation))(t); held || alive() {
			t.Fatalf("next life, the last one gone: held %v, the last one alive %v", held, alive())
		}
		if _, err := s.Leases.Renew(t.Context(), h, ""); err == nil {
			t.Fatal("the last life has its lease again")
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

func TestALeaseKnowsItsAge(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		age := func(h presence.Holder) (time.Duration, bool) {
			t.Helper()
			d, alive, err := s.Leases.Age(t.Context(), h)
			ok(t, err)
			return d, alive
		}
		if _, alive := age(h); alive {
			t.Fatal("alive before its first lease")
		}
		renewed(t, s, h)
		await.True(t, "the lease is of some age", func() bool {
			d, alive := age(h)
			return alive && d >= 50*time.Millisecond
		})
		began := time.Now()
		renewed(t, s, h)
		if d, _ := age(h); d > time.Since(began)+5*time.Millisecond { // the server's clock counts whole milliseconds
			t.Fatalf("age %v after a renewal that began %v ago", d, time.Since(began))
		}
		if _, alive := age(presence.Holder{Edge: h.Edge, Incarnation: "another life"}); alive {
			t.Fatal("another life has its lease")
		}
	})
}
