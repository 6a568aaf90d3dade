package presence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestWhatIsKnownOfAPeerIsKeptForAWhile(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s, ctx := srv.store(presence.Config{}), t.Context()
		a, b := presence.Holder{Edge: "a b", Incarnation: "1"}, presence.Holder{Edge: "b", Incarnation: "2"}
		bound := presence.Bound{Tenant: tenant, Agent: "anna", By: []byte("her\x00self")}
		for _, err := range []error{
			s.Peers.PutReservations(ctx, a, []string{"p", "q"}, time.Minute), s.Peers.PutReservations(ctx, b, []string{"p"}, time.Minute),
			s.Peers.Bind(ctx, "p", bound, time.Minute), s.Peers.PutReservations(ctx, b, []string{"short"}, time.Millisecond),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		found := must(s.Peers.Find(ctx, "p"))(t)
		if found.Bound == nil || found.Bound.Agent != bound.Agent || string(found.Bound.By) != string(bound.By) || len(found.At) != 2 || !slices.Contains(found.At, a) {
			t.Errorf("p is %+v", found)
		}
		if err := s.Peers.DropReservations(ctx, a, []string{"p", "q"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Peers.Unbind(ctx, "p"); err != nil {
			t.Fatal(err)
		}
		if found := must(s.Peers.Find(ctx, "p"))(t); found.Bound != nil || !slices.Equal(found.At, []presence.Holder{b}) {
			t.Errorf("p is %+v", found)
		}
		if found := must(s.Peers.Find(ctx, "q"))(t); len(found.At) > 0 {
			t.Errorf("q is %+v", found)
		}
		await.True(t, "what is over is gone", func() bool { return len(must(s.Peers.Find(ctx, "short"))(t).At) == 0 })
	})
}

func TestRelaysAreListedForAsLongAsTheySay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s, ctx := srv.store(presence.Config{}), t.Context()
		r := presence.Relay{Holder: presence.Holder{Edge: "a", Incarnation: "1"}, Peer: "12D3", Addresses: []string{"/ip4/127.0.0.1/tcp/9000/p2p/12D3"}}
		brief := presence.Relay{Holder: presence.Holder{Edge: "b", Incarnation: "1"}}
		for one, lasts := range map[*presence.Relay]time.Duration{&r: time.Minute, &brief: time.Millisecond} {
			if err := s.Peers.PutRelay(ctx, *one, lasts); err != nil {
				t.Fatal(err)
			}
		}
		await.True(t, "the brief one is over", func() bool { return len(must(s.Peers.Relays(ctx))(t)) == 1 })
		if all := must(s.Peers.Relays(ctx))(t); all[0].Peer != r.Peer || all[0].Holder != r.Holder || !slices.Equal(all[0].Addresses, r.Addresses) {
			t.Errorf("relays are %+v", all)
		}
		if err := s.Peers.DropRelay(ctx, r.Holder); err != nil {
			t.Fatal(err)
		}
		if all := must(s.Peers.Relays(ctx))(t); len(all) != 0 {
			t.Errorf("relays are %+v", all)
		}
	})
}
