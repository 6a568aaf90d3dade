package presence_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// benchStore is a Store on a real server.
func benchStore(b *testing.B) *presence.Store {
	c, err := presence.Dial("redis://" + servers.Redis(b).Addr())
	if err != nil {
		b.Fatal(err)
	}
	s := presence.New(presence.Config{Client: c})
	if err := s.SetWhole(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkClaim(b *testing.B) {
	s := benchStore(b)
	n := 0
	for b.Loop() {
		n++
		if _, err := s.Sessions.Claim(b.Context(), claimant(agora.AgentID("agent "+strconv.Itoa(n)), "e1")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	s := benchStore(b)
	if _, err := s.Sessions.Claim(b.Context(), claimant("a", "e1")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Addressees.Lookup(b.Context(), tenant, "a"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUseLane(b *testing.B) {
	s := benchStore(b)
	c, err := s.Sessions.Claim(b.Context(), claimant("a", "e1"))
	if err != nil {
		b.Fatal(err)
	}
	to := agora.ToAgent(tenant, "b")
	for b.Loop() {
		if err := s.Lanes.Use(b.Context(), c, to, &presence.OpenStream{Stream: "s", Indexed: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMissing looks after 1,000 claims, none of which is missing: ns, bytes and allocations are those of all of
// them.
func BenchmarkMissing(b *testing.B) {
	s := benchStore(b)
	claims, h := manyClaims(b, s, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if missing, err := s.Sessions.Missing(b.Context(), h, slices.Values(claims)); err != nil || len(missing) > 0 {
			b.Fatal(missing, err)
		}
	}
}

// manyClaims claims n agents for one edge.
func manyClaims(b testing.TB, s *presence.Store, n int) (claims []presence.Claim, h presence.Holder) {
	for i := range n {
		r := claimant(agora.AgentID("agent-"+strconv.Itoa(i)), "e1")
		c, err := s.Sessions.Claim(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		claims, h = append(claims, c), r.Holder
	}
	return claims, h
}
