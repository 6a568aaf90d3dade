package presence_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// full is a card that says all there is to say.
func full(id agora.AgentID) agora.Agent {
	return agora.Agent{
		ID: id, Name: "Full", Dialect: "iat", Domain: "law", Description: "says all", Version: "1.2",
		Skills: []agora.Skill{{Name: "translate", Description: "texts", Schema: json.RawMessage(`{ "b":1.0 }`)}, {Name: "bare"}},
		Tools:  []agora.Skill{{Name: "bare"}, {Name: "grep", Schema: json.RawMessage(`true`)}},
		Peer:   "12D3", Addresses: []string{"/ip4/1.2.3.4/tcp/1"}, RegisteredAt: time.UnixMicro(1_700_000_000_123_456),
		Registration: agora.Registration{Media: "application/json", Body: []byte("{\"x\":\xff}")},
	}
}

// light is what a list has of a card.
func light(a agora.Agent) agora.Agent {
	bare := func(all []agora.Skill) (out []agora.Skill) {
		for _, s := range all {
			out = append(out, agora.Skill{Name: s.Name, Description: s.Description})
		}
		return out
	}
	a.Skills, a.Tools, a.Registration, a.Status = bare(a.Skills), bare(a.Tools), agora.Registration{}, agora.Online
	return a
}

func registration(card agora.Agent, principal string) presence.Registration {
	return presence.Registration{Tenant: tenant, Principal: principal, Card: card}
}

// registers registers and fails the test unless that is to be told of so.
func registers(t *testing.T, s *presence.Store, r presence.Registration, lasts time.Duration, want agora.AgentStatus) uint64 {
	t.Helper()
	epoch, told, err := s.Registrations.Register(t.Context(), r, lasts)
	if err != nil || told != want {
		t.Fatalf("Register = %q, %v, want %q", told, err, want)
	}
	return epoch
}

func TestWhatAListDoesNotNeedIsKeptApart(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		raw := srv.client()
		defer raw.Close()
		r := claimant("a", "e1")
		r.Card = full("a")
		renewed(t, s, r.Holder)
		c, rec := begun(t, s, r)
		if !reflect.DeepEqual(rec.Card, r.Card) {
			t.Errorf("its next holder gets %+v, want %+v", rec.Card, r.Card)
		}
		whole := r.Card
		whole.Status = agora.Online
		if got := must(s.Directory.Agent(t.Context(), tenant, "a"))(t); !reflect.DeepEqual(got, whole) {
			t.Errorf("Agent = %+v, want %+v", got, whole)
		}
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 1 || !reflect.DeepEqual(got[0], light(r.Card)) {
			t.Errorf("Agents = %+v, want %+v", got, light(r.Card))
		}
		stored := raw.HGet(t.Context(), presence.RecordKey(tenant, "a"), "card").Val()
		if stored[0] != '2' || strings.Contains(stored, "1.0") {
			t.Errorf("stored card %q, want one of version 2 without schemas", stored)
		}
		// An edge that knows no details changes the card and leaves the detail.
		old := `1{"id":"a","name":"Old"}`
		ok(t, raw.HSet(t.Context(), presence.RecordKey(tenant, "a"), "card", old).Err())
		if got := must(s.Directory.Agent(t.Context(), tenant, "a"))(t); got.Name != "Old" || got.Skills != nil || got.Registration.Body != nil {
			t.Errorf("Agent = %+v, want the card of version 1 alone", got)
		}
		if changed := must(s.Directory.SetCard(t.Context(), c, "alice", full("a")))(t); !changed {
			t.Error("another card is no change")
		}
		if changed := must(s.Directory.SetCard(t.Context(), c, "alice", full("a")))(t); changed {
			t.Error("the same card again is a change")
		}
		plain := agora.Agent{ID: "a", Name: "n", Type: "t", Dialect: agora.OwnDialect}
		_ = must(s.Directory.SetCard(t.Context(), c, "alice", plain))(t)
		if stored := raw.HGetAll(t.Context(), presence.RecordKey(tenant, "a")).Val(); stored["card"][0] != '1' || stored["detail"] != "" {
			t.Errorf("stored %q and %q, want what every edge can read", stored["card"], stored["detail"])
		}
		_, err := s.Directory.Agent(t.Context(), tenant, "nobody")
		if err == nil || agora.AsError(err).Code != agora.AgentNotFound {
			t.Errorf("Agent = %v, want AGENT_NOT_FOUND", err)
		}
	})
}

func TestARegistrationIsListedAndKnownUntilItLapses(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "e", Incarnation: "i"}
		registers(t, s, registration(full("a"), "alice"), time.Hour, agora.Online)
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 1 || got[0].Name != "Full" {
			t.Fatalf("agents %+v", got)
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Away {
			t.Fatalf("found %+v, want it known and away", f)
		}
		if got := must(s.Directory.Agent(t.Context(), tenant, "a"))(t); len(got.Registration.Body) == 0 || got.Tools[1].Schema == nil {
			t.Fatalf("Agent = %+v, want all that it registered", got)
		}
		registers(t, s, registration(full("a"), "alice"), time.Hour, "")
		other := full("a")
		other.Skills[0].Schema = json.RawMessage(`{}`)
		registers(t, s, registration(other, "alice"), time.Hour, agora.Updated)
		if ending := must(s.Sweep(t.Context(), h, 64))(t); len(ending) != 0 {
			t.Fatalf("swept %+v", ending)
		}
		epoch := registers(t, s, registration(other, "alice"), time.Millisecond, "")
		sweepUntil(t, s, h, 64, func(ending []presence.Claim) bool {
			if len(ending) > 0 && (ending[0].Agent != "a" || ending[0].Session != "" || ending[0].Epoch != epoch) {
				t.Errorf("swept %+v", ending)
			}
			return len(ending) == 1
		})
		for name, err := range map[string]error{
			"Register": second(s.Registrations.Register(t.Context(), registration(other, "alice"), time.Hour)),
			"Claim":    second(s.Sessions.Claim(t.Context(), claimant("a", "e1"))),
		} {
			if !errors.Is(err, presence.ErrEnding) {
				t.Errorf("%s before the end was told = %v, want %v", name, err, presence.ErrEnding)
			}
		}
		c := must(s.Registrations.Lapsed(t.Context(), tenant, "a"))(t)
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 0 {
			t.Fatalf("agents %+v when it is about to be told that it has gone", got)
		}
		ok(t, s.Registrations.Unregister(t.Context(), c))
		is(t, s.Registrations.Unregister(t.Context(), c), presence.ErrDeposed)
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 0 {
			t.Fatalf("agents %+v", got)
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Unknown {
			t.Fatalf("found %+v, want it unknown", f)
		}
		late := registration(other, "alice")
		late.Epoch = epoch
		registers(t, s, late, time.Hour, "") // an edge that has it still: nothing comes of it
		registers(t, s, registration(other, "bob"), time.Hour, agora.Online)
	})
}

// second returns the error of a call.
func second(values ...any) error {
	err, _ := values[len(values)-1].(error)
	return err
}

func TestAnIDThatIsRegisteredIsItsPrincipals(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		registers(t, s, registration(full("a"), "alice"), time.Hour, agora.Online)
		_, _, err := s.Registrations.Register(t.Context(), registration(full("a"), "bob"), time.Hour)
		is(t, err, presence.ErrOwned)
		theirs := claimant("a", "e1")
		theirs.Principal = "bob"
		_, err = s.Sessions.Claim(t.Context(), theirs)
		is(t, err, presence.ErrOwned)
		renewed(t, s, claimant("b", "e1").Holder)
		_, _ = begun(t, s, claimant("b", "e1"))
		_, _, err = s.Registrations.Register(t.Context(), registration(full("b"), "bob"), time.Hour)
		is(t, err, presence.ErrOwned)
	})
}

func TestASessionTakesOverFromARegistrationAndGivesBack(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := presence.Holder{Edge: "e", Incarnation: "i"}
		name := func() string {
			t.Helper()
			got := must(s.Directory.Agents(t.Context(), tenant))(t)
			if len(got) != 1 {
				t.Fatalf("agents %+v", got)
			}
			return got[0].Name
		}
		registers(t, s, registration(full("a"), "alice"), time.Hour, agora.Online)
		r := claimant("a", "e1")
		renewed(t, s, r.Holder)
		c, _ := begun(t, s, r)
		if got := name(); got != "the a" {
			t.Errorf("shown as %q, want as its session says", got)
		}
		_ = must(s.Directory.SetCard(t.Context(), c, "alice", agora.Agent{ID: "a", Name: "a", RegisteredAt: time.Now()}))(t)
		if got := name(); got != "Full" {
			t.Errorf("shown as %q, want as it registered: its session says nothing", got)
		}
		other := full("a")
		other.Name = "Other"
		registers(t, s, registration(other, "alice"), time.Hour, agora.Updated)
		registers(t, s, registration(other, "alice"), time.Millisecond, "") // which does not shorten the session
		await.True(t, "the registration is over", func() bool {
			_, _ = s.Sweep(t.Context(), h, 64)
			rec := must(s.Operators.Inspect(t.Context(), tenant, "a"))(t)
			return time.Now().After(rec.Until)
		})
		if got := must(s.Sweep(t.Context(), h, 64))(t); len(got) != 0 {
			t.Errorf("swept %+v", got)
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online {
			t.Errorf("found %+v, want it online", f)
		}
		registers(t, s, registration(other, "alice"), time.Hour, "")
		ok(t, s.Sessions.End(t.Context(), c))
		_, _, err := s.Registrations.Register(t.Context(), registration(other, "alice"), time.Hour)
		is(t, err, presence.ErrEnding)
		e, rec, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		if left := time.Until(rec.Until); left < 50*time.Minute {
			t.Errorf("registered for %v more, want nearly an hour", left)
		}
		ok(t, s.Sessions.Finished(t.Context(), e, true))
		if got := name(); got != "Other" {
			t.Errorf("shown as %q, want as it registered", got)
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Away {
			t.Errorf("found %+v, want it known", f)
		}
	})
}

func TestAGraceIsNotLongerForARegistration(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Grace: time.Millisecond, Lease: 10 * time.Millisecond})
		c, _ := begun(t, s, claimant("a", "e1"))
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
		registers(t, s, registration(full("a"), "alice"), time.Hour, "")
		sweepUntil(t, s, presence.Holder{Edge: "e", Incarnation: "i"}, 64, func(ending []presence.Claim) bool {
			return len(ending) == 1 && ending[0].Session != ""
		})
	})
}

func TestARegistrationThatTheServerLostIsWrittenAgain(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		first := registration(full("a"), "alice")
		first.Epoch = registers(t, s, first, time.Hour, agora.Online)
		last := first
		last.Card.Name = "Last"
		last.Epoch = 0
		last.Epoch = registers(t, s, last, time.Hour, agora.Updated)
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		if _, _, err := s.Registrations.Register(t.Context(), registration(full("b"), "bob"), time.Hour); !errors.Is(err, presence.ErrIncomplete) {
			t.Errorf("Register = %v, want UNAVAILABLE while it may be another's", err)
		}
		for _, r := range []presence.Registration{first, last, first} { // whichever edge writes first, the last one stands
			_, _, err := s.Registrations.Register(t.Context(), r, time.Hour)
			ok(t, err)
		}
		ok(t, s.SetWhole(t.Context()))
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 1 || got[0].Name != "Last" {
			t.Errorf("agents %+v", got)
		}
	})
}

func TestAComparisonFindsWhatHasChanged(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := claimant("a", "e1").Holder
		renewed(t, s, h)
		a, _ := begun(t, s, claimant("a", "e1"))
		_, _ = begun(t, s, claimant("b", "e1"))
		var m presence.Mark
		look := func() presence.Changes {
			t.Helper()
			c, next, err := s.Directory.Changed(t.Context(), tenant, m)
			ok(t, err)
			m = next
			return c
		}
		if c := look(); !c.All || len(c.Listed) != 2 {
			t.Fatalf("first %+v, want all", c)
		}
		_ = must(s.Directory.SetCard(t.Context(), a, "alice", full("a")))(t)
		registers(t, s, registration(full("c"), "alice"), time.Hour, agora.Online)
		c := look()
		names := map[agora.AgentID]string{}
		for _, l := range c.Listed {
			names[l.ID] = l.Agent().Name
		}
		if c.All || names["a"] != "Full" || names["c"] != "Full" {
			t.Fatalf("then %+v, want a and c among what may have changed", c)
		}
		ok(t, s.Sessions.End(t.Context(), a))
		if c = look(); c.All || len(c.Gone) != 1 || c.Gone[0] != "a" {
			t.Fatalf("then %+v, want a gone", c)
		}
		presence.Age(&m) // as if the last change had been long ago
		if c = look(); c.All || len(c.Listed)+len(c.Gone) != 0 {
			t.Fatalf("then %+v, want nothing", c)
		}
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		if _, _, err := s.Directory.Changed(t.Context(), tenant, m); !errors.Is(err, presence.ErrIncomplete) {
			t.Errorf("Changed = %v of a server that has lost all, want UNAVAILABLE", err)
		}
		ok(t, s.SetWhole(t.Context()))
		if c = look(); !c.All || len(c.Listed) != 0 {
			t.Fatalf("then %+v, want all, which is nothing", c)
		}
	})
}
