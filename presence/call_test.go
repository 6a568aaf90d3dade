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

func TestACallThatIsOverIsNotToBeAnsweredThoughAnEdgeThatIsBackListsIt(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		edge := presence.Holder{Edge: "edge 1", Incarnation: "a"}
		c := presence.Call{Tenant: tenant, Box: "box", From: "anna", To: "bob", Request: "r"}
		lists := func(listed, toAnswer int) {
			t.Helper()
			all, _, err := s.Calls.To(t.Context(), tenant, "bob")
			ok(t, err)
			some, _, err := s.Calls.ToAnswer(t.Context(), tenant, "bob")
			if ok(t, err); len(all) != listed || len(some) != toAnswer {
				t.Fatalf("listed are %+v, to be answered %+v; want %d and %d", all, some, listed, toAnswer)
			}
		}
		if state, _, err := s.Calls.Open(t.Context(), edge, "1", c, time.Minute, time.Minute); err != nil || state != presence.CallNew {
			t.Fatalf("Open = %v, %v", state, err)
		}
		lists(1, 1)
		must(s.Calls.Leave(t.Context(), edge, []presence.Leaving{{Call: c, Waiter: "*", End: true}}, time.Minute, time.Minute))(t)
		lists(1, 0)
		ok(t, s.Calls.Drop(t.Context(), edge, []presence.Call{c}))
		lists(0, 0)
		must(s.Calls.Hold(t.Context(), edge, []presence.Waiting{{Call: c, Waiters: []string{"1"}}}, time.Minute))(t)
		lists(1, 0)
	})
}

// An edge tells presence again what its callers wait for while it learns that one of them has used a name that stands
// for another request.
func TestANameStandsForItsFirstRequestThoughAnEdgeTellsOfAnother(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		edge := presence.Holder{Edge: "edge 1", Incarnation: "a"}
		first := presence.Call{Tenant: tenant, Box: "box", From: "anna", To: "bob", Request: "r", Digest: "1", Named: true}
		other := first
		other.Request, other.Digest = "r2", "2"
		opens := func(c presence.Call, want presence.CallState) {
			t.Helper()
			if state, _, err := s.Calls.Open(t.Context(), edge, "1", c, time.Minute, time.Minute); err != nil || state != want {
				t.Fatalf("Open of %s = %v, %v; want %v", c.Request, state, err, want)
			}
		}
		opens(first, presence.CallNew)
		ok(t, s.Calls.Asked(t.Context(), first))
		must(s.Calls.Hold(t.Context(), edge, []presence.Waiting{{Call: other, Waiters: []string{"2"}}}, time.Minute))(t)
		opens(other, presence.CallOther)
		opens(first, presence.CallOpen)
		left := must(s.Calls.Leave(t.Context(), edge, []presence.Leaving{{Call: first, Waiter: "1", Whole: true}}, time.Minute, time.Minute))(t)
		if len(left) != 1 || left[0] != presence.CallAnswered {
			t.Errorf("Leave = %v, want %v: nobody waits for the other request", left, presence.CallAnswered)
		}
	})
}

func TestAnswersThatADeadEdgeWasToLookForAreLeftToOthersUntilSomebodyHasLooked(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		edge := presence.Holder{Edge: "edge 1", Incarnation: "a"}
		c := presence.Call{Tenant: tenant, Box: "box", From: "anna", To: "bob", Request: "r"}
		must(s.Leases.Renew(t.Context(), edge, ""))(t)
		if state, _, err := s.Calls.Open(t.Context(), edge, "1", c, time.Minute, time.Minute); err != nil || state != presence.CallNew {
			t.Fatalf("Open = %v, %v", state, err)
		}
		must(s.Calls.Leave(t.Context(), edge, []presence.Leaving{{Call: c, Waiter: "1", End: true}}, time.Minute, time.Minute))(t)
		ok(t, s.Calls.LookAgain(t.Context(), edge, []presence.Call{c}))
		ok(t, s.Calls.Drop(t.Context(), edge, []presence.Call{c}))
		lost := func(want int) {
			t.Helper()
			var looks []presence.Call
			for _, of := range must(s.Calls.Lost(t.Context()))(t) {
				if of.Holder != edge || len(of.Calls) > 0 {
					t.Fatalf("Lost = %+v", of)
				}
				looks = append(looks, of.Looks...)
			}
			if len(looks) != want || want > 0 && looks[0] != c {
				t.Fatalf("answers of %+v are to be looked for, want those of %d calls", looks, want)
			}
		}
		lost(0) // it lives
		ok(t, s.Leases.Resign(t.Context(), edge))
		lost(1)
		lost(1)
		ok(t, s.Calls.Looked(t.Context(), edge, []presence.Call{c}))
		lost(0)
	})
}
