package presence_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/presence"
)

func TestAnEdgeThatIsBackLearnsWhichCallsWereEndedAndWhetherThatIsDone(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		edge, other := presence.Holder{Edge: "edge 1", Incarnation: "a"}, presence.Holder{Edge: "edge 2", Incarnation: "b"}
		c := presence.Call{Tenant: tenant, Box: "box", From: "anna", To: "bob", Request: "r"}
		if state, _, err := s.Calls.Open(t.Context(), edge, "1", c, time.Minute, time.Minute); err != nil || state != presence.CallNew {
			t.Fatalf("Open = %v, %v", state, err)
		}
		hold := func(want ...presence.Ended) {
			t.Helper()
			ended := must(s.Calls.Hold(t.Context(), edge, []presence.Waiting{{Call: c, Waiters: []string{"1"}}}, time.Minute))(t)
			if len(ended) != len(want) || len(want) > 0 && ended[0] != want[0] {
				t.Fatalf("Hold = %+v, want %+v", ended, want)
			}
		}
		hold()
		must(s.Calls.Leave(t.Context(), edge, []presence.Leaving{{Call: c, Waiter: "*", End: true}}, time.Minute, time.Minute))(t)
		hold(presence.Ended{Call: c, Untold: true})
		ok(t, s.Calls.Drop(t.Context(), other, []presence.Call{c})) // which has not waited for it
		hold(presence.Ended{Call: c, Untold: true})
		ok(t, s.Calls.Drop(t.Context(), edge, []presence.Call{c}))
		hold(presence.Ended{Call: c})
	})
}
