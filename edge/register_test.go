package edge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// card is what an agent without a connection says of itself.
func cardOf(id agora.AgentID) agora.Agent {
	return agora.Agent{
		ID: id, Name: "Someone", Dialect: "other", Skills: []agora.Skill{{Name: "translate"}},
		Registration: agora.Registration{Media: "text/plain", Body: []byte("as it came")},
	}
}

// refusal is the error of a registration.
func refusal(_ time.Time, err error) error { return err }

// names returns the names of all that an actor sees.
func names(t *testing.T, a *edge.Actor) string {
	t.Helper()
	all, err := a.Directory().All(t.Context())
	if err != nil {
		return agora.AsError(err).Error()
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func TestAnAgentWithoutAConnectionIsThereUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Register: 3 * time.Second, Lease: 5 * time.Second, Compare: time.Hour}})
	first, other := actor(t, c, 0), actor(t, c, 1)
	watcher, _ := registered(t, c, 2, "watcher")
	watcher.Send(`{"type":"space.join","space":"agent.status"}`)
	watcher.Await(`{"type":"space.joined"}`)
	if _, err := first.Register(t.Context(), cardOf("a"), 0); err != nil {
		t.Fatal(err)
	}
	if got := names(t, first); got != "Someone watcher" {
		t.Errorf("the edge where it registered shows %q", got)
	}
	await.True(t, "another edge shows it", func() bool { return names(t, other) == "Someone watcher" })
	told := func(status agora.AgentStatus) {
		t.Helper()
		watcher.Await(`{"type":"space.event","data":{"agent":"a","status":"` + string(status) + `","timestamp":"<any>"}}`)
	}
	told(agora.Online)
	watcher.Send(numbered("a", 1))
	watcher.Await(`{"type":"receipt","n":1}`) // kept for it
	if a, err := other.Directory().Card(t.Context(), "a"); err != nil || string(a.Registration.Body) != "as it came" {
		t.Errorf("Agent = %+v, %v", a, err)
	}
	if found, err := other.Directory().Find(t.Context(), directory.Query{Skill: "translate"}); err != nil || len(found) != 1 {
		t.Errorf("FindAgents = %+v, %v", found, err)
	}
	changed := cardOf("a")
	changed.Skills = nil
	if _, err := other.Register(t.Context(), changed, 0); err != nil {
		t.Fatal(err)
	}
	told(agora.Updated)
	told(agora.Offline)
	await.True(t, "it is gone everywhere", func() bool { return names(t, first) == "watcher" && names(t, other) == "watcher" })
}

func TestASessionGoesOnPastARegistration(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Register: time.Hour, Compare: time.Hour}})
	speaker := actor(t, c, 0)
	if _, err := speaker.Register(t.Context(), cardOf("a"), 0); err != nil {
		t.Fatal(err)
	}
	elsewhere := actor(t, c, 2)
	if got := names(t, elsewhere); got != "Someone" {
		t.Errorf("another edge shows %q", got)
	}
	a, _ := registered(t, c, 1, "a") // which says nothing of itself
	there := func() string {
		one, err := speaker.Directory().Card(t.Context(), "a")
		if err != nil {
			return err.Error()
		}
		return one.Name + " " + one.DialectName()
	}
	if got := there(); got != "Someone other" {
		t.Errorf("shown as %q, want as it registered", got)
	}
	a.Send(`{"type":"agent.register","agent":{"id":"a","metadata":{"name":"Speaking"}}}`)
	a.Await(`{"type":"agent.registered"}`)
	if got := there(); got != "Speaking agora" {
		t.Errorf("shown as %q, want as it says in its session", got)
	}
	a.Close(1000)
	await.True(t, "it is there as it registered", func() bool { return there() == "Someone other" })
	await.True(t, "other edges show it", func() bool { return names(t, elsewhere) == "Someone" })
}

func TestARegistrationIsHeldAgainstTheRules(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	speaker := actor(t, c, 0)
	large := cardOf("a")
	large.Registration.Body = make([]byte, 256<<10)
	for want, err := range map[string]error{
		"agent id 'agora' is the cluster's own":      refusal(speaker.Register(t.Context(), cardOf("agora"), 0)),
		"card is larger than 262144 bytes":           refusal(speaker.Register(t.Context(), large, 0)),
		"a registration lasts from 1m0s to 24h0m0s":  refusal(speaker.Register(t.Context(), cardOf("a"), time.Second)),
		"a registration lasts from 1m0s to 24h0m0s ": refusal(speaker.Register(t.Context(), cardOf("a"), 25*time.Hour)),
	} {
		if e := agora.AsError(err); e == nil || e.Code != agora.InvalidRequest || e.Message != strings.TrimSpace(want) {
			t.Errorf("Register = %v, want INVALID_REQUEST: %s", err, want)
		}
	}
}

func TestARegistrationOutlivesTheLossOfRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	speaker, other := actor(t, c, 0), actor(t, c, 1)
	if _, err := speaker.Register(t.Context(), cardOf("a"), time.Hour); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it is there", func() bool { return names(t, other) == "Someone" })
	forget(c)
	lost := false
	await.True(t, "it is there again", func() bool {
		got := names(t, other)
		lost = lost || strings.HasPrefix(got, string(agora.Unavailable))
		if got != "Someone" && !strings.HasPrefix(got, string(agora.Unavailable)) {
			t.Fatalf("shown is %q, want the agent or UNAVAILABLE", got)
		}
		return lost && got == "Someone"
	})
}

func TestARegistrationIsEndedBeforeItsTime(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Register: time.Hour, Compare: time.Hour}})
	first, other := actor(t, c, 0), actor(t, c, 1)
	if err := first.Unregister(t.Context(), "a"); agora.AsError(err).Code != agora.AgentNotFound {
		t.Errorf("Unregister of nobody = %v, want AGENT_NOT_FOUND", err)
	}
	for range 2 { // it may come back
		until, err := first.Register(t.Context(), cardOf("a"), 0)
		if left := time.Until(until); err != nil || left > time.Hour+time.Minute || left < time.Minute { // by the clock of the log, which another reads
			t.Fatalf("Register = in %v, %v", left, err)
		}
		await.True(t, "it is there", func() bool { return names(t, other) == "Someone" })
		if err := other.Unregister(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		await.True(t, "it is gone everywhere", func() bool { return names(t, first) == "" && names(t, other) == "" })
	}
	if _, err := first.Register(t.Context(), cardOf("a"), 0); err != nil {
		t.Fatal(err)
	}
	a, _ := registered(t, c, 1, "a")
	if err := first.Unregister(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	a.Send(`{"type":"list"}`)
	a.Await(`{"type":"agents"}`) // its session continues
	if got := names(t, first); got != "a" {
		t.Errorf("the directory shows %q, want the session", got)
	}
}
