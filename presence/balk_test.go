package presence_test

import (
	"testing"

	"github.com/agora-relay/agora/presence"
)

func TestTheSecondFrameInARowThatClosesAConnectionTellsWhatItsAgentTakes(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		large, other := presence.Balk{Seq: 256, Size: 5000}, presence.Balk{Space: "room one", Seq: 256, Size: 4000}
		for i, step := range []struct {
			balk  presence.Balk
			takes int
		}{{large, 0}, {other, 0}, {large, 0}, {large, 4999}, {other, 4999}, {other, 3999}, {large, 3999}, {large, 3999}} {
			c, _ := begun(t, s, claimant("a", "e1"))
			for range 2 { // the second time as if the first answer was lost
				ok(t, s.Sessions.Balked(t.Context(), c, step.balk))
			}
			ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
			next, rec := begun(t, s, claimant("a", "e2"))
			ok(t, s.Sessions.Balked(t.Context(), c, presence.Balk{Seq: 1, Size: 1})) // which holds nothing any more
			if rec.Takes != step.takes {
				t.Fatalf("after %d steps the agent takes %d bytes, want %d", i+1, rec.Takes, step.takes)
			}
			ok(t, s.Sessions.Lose(t.Context(), next, presence.Position{}, nil, false))
		}
	})
}
