package spaces

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// mute returns a hub of the edge that can change members and can't tell anybody.
func (e *edge) mute(t *testing.T) *Hub {
	t.Helper()
	log, err := broker.Connect(t.Context(), broker.Config{URL: shared.log.URL(), Name: "mute", Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	h := New(Config{Broker: log, Presence: e.store})
	t.Cleanup(h.Close)
	return h
}

// tell is a roster as a member reads it.
type tell struct {
	version uint64
	agora.RosterBody
}

func rosters(t *testing.T, es []*Event) (ts []tell) {
	t.Helper()
	for _, e := range es {
		if e.Kind != agora.Roster {
			continue
		}
		r, err := e.RosterBody()
		if err != nil {
			t.Fatalf("roster %q: %v", e.Body, err)
		}
		ts = append(ts, tell{e.N, r})
	}
	return ts
}

// TestRostersAreToldOnceAndInOrder has agents join and leave at two edges at
// once, while some changes are made by a hub that can't publish.
func TestRostersAreToldOnceAndInOrder(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	es := edges(t, presence.Config{}, Config{})
	var watch [2]*listener
	for i := range watch {
		watch[i], _ = es[i].join(t, fmt.Sprint("watch", i), "room", Where{})
	}
	silent := es[0].mute(t)
	var wg sync.WaitGroup
	for a := range 8 {
		e, c := es[a%2], es[a%2].claim(t, fmt.Sprint("a", a))
		r := rand.New(rand.NewPCG(uint64(a), 1))
		wg.Go(func() {
			for range rounds {
				hop(t, e, silent, c, r)
			}
		})
	}
	wg.Wait()
	// The next change tells whatever is untold.
	_, j := es[1].join(t, "last", "room", Where{})
	es[0].say(t, "room", "end", "end")
	first := rosters(t, watch[0].until("watch0", seen("end")))[1:] // watch1's join
	second := rosters(t, watch[1].until("watch1", seen("end")))
	if fmt.Sprint(texts(first)) != fmt.Sprint(texts(second)) {
		t.Errorf("the edges were told\n%v and\n%v", texts(first), texts(second))
	}
	checkRosters(t, []agora.AgentID{"watch0", "watch1"}, first)
	final := first[len(first)-1].Members
	if got := fmt.Sprint(j.Members); got != fmt.Sprint(final) {
		t.Errorf("the last roster says %v, the last join was answered %v", final, got)
	}
}

// hop joins and leaves once, each time with a chance that nobody is told.
func hop(t *testing.T, e *edge, silent *Hub, c presence.Claim, r *rand.Rand) {
	on := func() *Hub {
		if r.IntN(4) == 0 {
			return silent
		}
		return e.Hub
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Long)
	defer cancel()
	h := on()
	p, _, err := h.Join(ctx, c, "room", Where{}, func() {})
	if err == nil {
		p.Close()
	}
	if (err != nil) != (h == silent) {
		t.Errorf("join: %v, silent %v", err, h == silent)
	}
	h = on()
	if err := h.Leave(ctx, c, "room"); (err != nil) != (h == silent) {
		t.Errorf("leave: %v, silent %v", err, h == silent)
	}
}

func texts(ts []tell) (s []string) {
	for _, r := range ts {
		switch {
		case r.Joined != "":
			s = append(s, "+"+string(r.Joined))
		case r.Left != "":
			s = append(s, "-"+string(r.Left))
		}
	}
	return s
}

// checkRosters follows the changes from the members at the start: each must
// be the next version, and say the members that it makes.
func checkRosters(t *testing.T, members []agora.AgentID, told []tell) {
	t.Helper()
	for i, r := range told {
		if i > 0 && r.version != told[i-1].version+1 {
			t.Errorf("version %d after %d", r.version, told[i-1].version)
		}
		switch {
		case r.Joined != "" && r.Left == "" && !slices.Contains(members, r.Joined):
			members = append(members, r.Joined)
		case r.Left != "" && r.Joined == "" && slices.Contains(members, r.Left):
			members = slices.DeleteFunc(members, func(m agora.AgentID) bool { return m == r.Left })
		default:
			t.Fatalf("roster %d joined %v left %v of %v", i, r.Joined, r.Left, members)
		}
		if !slices.Equal(members, r.Members) {
			t.Fatalf("roster %d says %v, want %v", i, r.Members, members)
		}
	}
}

func TestAnUntoldJoinStandsAndIsToldByItsRepetition(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	watch, _ := es[1].join(t, "watch", "room", Where{})
	c := es[0].claim(t, "a")
	silent := es[0].mute(t)
	_, _, err := silent.Join(await.Context(t), c, "room", Where{}, func() {})
	wantError(t, "join", err, agora.Unavailable, "")
	if ok, err := es[1].store.Spaces.IsMember(t.Context(), es[1].tenant, "room", "a"); err != nil || !ok {
		t.Fatalf("member %v, %v, want the membership to stand", ok, err)
	}
	p, j, err := es[0].Join(t.Context(), c, "room", Where{}, func() {})
	if err != nil || fmt.Sprint(j.Members) != "[watch a]" {
		t.Fatalf("second join = %v, %v", j.Members, err)
	}
	p.Close()
	es[0].say(t, "room", "end", "end")
	if got := fmt.Sprint(texts(rosters(t, watch.until("watch", seen("end"))))); got != "[+a]" {
		t.Errorf("watch was told %v, want [+a]", got)
	}
}

// TestAnUntoldLeaveIsToldByWhoEndsTheSession: the edge could tell nobody, and nobody else comes or goes.
func TestAnUntoldLeaveIsToldByWhoEndsTheSession(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	watch, _ := es[1].join(t, "watch", "room", Where{})
	c := es[0].claim(t, "a")
	p, _, err := es[0].Join(t.Context(), c, "room", Where{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	wantError(t, "leave", es[0].mute(t).Leave(await.Context(t), c, "room"), agora.Unavailable, "")
	if err := es[0].store.Sessions.End(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ending, rec, err := es[1].store.Sessions.Ending(t.Context(), c.Tenant, "a")
	if err != nil || !slices.Equal(rec.Leaving, []string{"room"}) || len(rec.Spaces) > 0 {
		t.Fatalf("the session that ends is leaving %v, and in %v: %v", rec.Leaving, rec.Spaces, err)
	}
	if err := es[1].Leave(t.Context(), ending, "room"); err != nil {
		t.Fatal(err)
	}
	es[0].say(t, "room", "end", "end")
	if got := fmt.Sprint(texts(rosters(t, watch.until("watch", seen("end"))))); got != "[+a -a]" {
		t.Errorf("watch was told %v, want [+a -a]", got)
	}
}
