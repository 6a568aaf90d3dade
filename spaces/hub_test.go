package spaces

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// claim gives the edge's agent a session.
func (e *edge) claim(t testing.TB, id string) presence.Claim {
	t.Helper()
	agent := agora.AgentID(id)
	c, err := e.store.Sessions.Claim(t.Context(), presence.ClaimRequest{
		Tenant: e.tenant, Agent: agent, Principal: "p", Holder: e.holder, Conn: "ws-1",
		Session: "s-" + id, Token: "t-" + id, Card: agora.Agent{ID: agent, Name: id},
	})
	if err != nil {
		t.Fatalf("claim %s: %v", id, err)
	}
	return c
}

// say publishes one event and returns its position.
func (e *edge) say(t testing.TB, space, key, body string) uint64 {
	t.Helper()
	m := agora.Message{Kind: agora.Event, To: agora.ToSpace(e.tenant, space), From: "someone", Body: []byte(body)}
	seq, err := e.log.Publish(t.Context(), e.tenant+"/"+space+"/"+key, m)
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return seq
}

// listener is a member that takes what it is given as it comes.
type listener struct {
	t     testing.TB
	place *Place
	woken chan struct{}
	got   []*Event
}

func newListener(t testing.TB) *listener { return &listener{t: t, woken: make(chan struct{}, 1)} }

func (l *listener) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// join makes the listener a member with a session of its own.
func (e *edge) join(t testing.TB, id, space string, w Where) (*listener, Joined) {
	t.Helper()
	l := newListener(t)
	p, j, err := e.Join(t.Context(), e.claim(t, id), space, w, l.wake)
	if err != nil {
		t.Fatalf("join %s: %v", id, err)
	}
	l.place = p
	t.Cleanup(p.Close)
	return l, j
}

func (e *edge) resume(t testing.TB, id, space string, w Where) *listener {
	l := newListener(t)
	l.place = e.Open(e.tenant, space, agora.AgentID(id), w, l.wake)
	t.Cleanup(l.place.Close)
	return l
}

// until takes events until done says so of all that came. Where the log did not answer in time it asks again.
func (l *listener) until(what string, done func([]*Event) bool) []*Event {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), await.Long)
	defer cancel()
	for !done(l.got) {
		es, err := l.place.Next(ctx, 4<<10)
		if err != nil && (ctx.Err() != nil || agora.AsError(err).Code != agora.Unavailable) {
			l.t.Fatalf("%s: %v", what, err)
		}
		l.got = append(l.got, es...)
		if len(es) > 0 || err != nil {
			continue
		}
		select {
		case <-l.woken:
		case <-ctx.Done():
			l.t.Fatalf("%s: waited in vain, got %s", what, bodies(l.got))
		}
	}
	return l.got
}

// seen reports whether an event with the body came.
func seen(body string) func([]*Event) bool {
	return func(es []*Event) bool { return len(es) > 0 && string(es[len(es)-1].Body) == body }
}

// bodies joins the bodies of all but rosters.
func bodies(es []*Event) (s string) {
	for _, e := range es {
		if e.Kind != agora.Roster {
			s += string(e.Body) + " "
		}
	}
	return s
}

func TestEveryMemberOnEveryEdgeSeesOneOrder(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	var members []*listener
	for i := range 6 {
		l, _ := es[i%2].join(t, fmt.Sprint("m", i), "room", Where{})
		members = append(members, l)
	}
	const speakers, words = 4, 50
	var wg sync.WaitGroup
	for s := range speakers {
		wg.Go(func() {
			for w := range words {
				es[s%2].say(t, "room", fmt.Sprint(s, "/", w), fmt.Sprintf("%d.%d", s, w))
			}
		})
	}
	wg.Wait()
	es[0].say(t, "room", "end", "end")
	want := bodies(members[0].until("member 0", seen("end")))
	if n := len(members[0].got); n < speakers*words+1 {
		t.Fatalf("member 0 got %d events, want %d and rosters", n, speakers*words+1)
	}
	for i, m := range members[1:] {
		if got := bodies(m.until(fmt.Sprint("member ", i+1), seen("end"))); got != want {
			t.Errorf("member %d got\n%s\nmember 0 got\n%s", i+1, got, want)
		}
	}
}

func TestAJoinIsAnsweredWithMembersAndPosition(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	a, ja := es[0].join(t, "a", "room", Where{})
	before := es[0].say(t, "room", "1", "before")
	b, jb := es[1].join(t, "b", "room", Where{})
	after := es[0].say(t, "room", "2", "after")
	if got := fmt.Sprint(ja.Members, jb.Members); got != "[a] [a b]" {
		t.Errorf("members = %s, want [a] [a b]", got)
	}
	if !(ja.Seq < before && before < jb.Seq && jb.Seq < after) {
		t.Errorf("positions %d, %d, want them before %d and between that and %d", ja.Seq, jb.Seq, before, after)
	}
	if got := bodies(b.until("b", seen("after"))); got != "after " || len(b.got) != 1 {
		t.Errorf("b got %d events %q, want only \"after\"", len(b.got), got)
	}
	got := a.until("a", seen("after"))
	want := agora.RosterBody{Members: []agora.AgentID{"a", "b"}, Joined: "b"}
	if r, err := got[min(1, len(got)-1)].RosterBody(); len(got) != 3 || err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("a got %d events, second %v, want the roster with b between the two", len(got), got[min(1, len(got)-1)])
	}
}

func TestAJoinIntoABusySpaceMissesNothingAfterItsPosition(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	all, _ := es[0].join(t, "first", "room", Where{})
	var talking sync.WaitGroup
	stop := make(chan struct{})
	talking.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				es[0].say(t, "room", fmt.Sprint(i), fmt.Sprint(i))
			}
		}
	})
	var joiners []*listener
	var at []uint64
	for i := range 10 {
		l, j := es[i%2].join(t, fmt.Sprint("j", i), "room", Where{})
		joiners, at = append(joiners, l), append(at, j.Seq)
	}
	close(stop)
	talking.Wait()
	es[0].say(t, "room", "end", "end")
	whole := all.until("first", seen("end"))
	for i, l := range joiners {
		var want []*Event
		for _, e := range whole {
			if e.Seq > at[i] {
				want = append(want, e)
			}
		}
		if got := bodies(l.until("joiner", seen("end"))); got != bodies(want) || len(l.got) != len(want) {
			t.Errorf("joiner %d got %q (%d), want %q (%d)", i, got, len(l.got), bodies(want), len(want))
		}
	}
}

func TestPlacesComeAndGoWhileEventsFlow(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{QueueBytes: 8 * overhead})
	all, _ := es[0].join(t, "all", "room", Where{})
	var busy sync.WaitGroup
	for k := range 8 {
		busy.Go(func() {
			for i := range 20 {
				l := newListener(t)
				p := es[k%2].Open(es[0].tenant, "room", "x", Where{HasLast: i%2 == 0}, l.wake)
				for range i % 4 {
					if _, err := p.Next(t.Context(), 4<<10); err != nil {
						t.Errorf("next: %v", err)
					}
				}
				p.Close()
			}
		})
	}
	for i := range 100 {
		es[i%2].say(t, "room", fmt.Sprint(i), fmt.Sprint(i))
	}
	busy.Wait()
	es[0].say(t, "room", "end", "end")
	if got := len(all.until("all", seen("end"))); got != 101 {
		t.Errorf("all got %d events, want 101", got)
	}
	all.place.Close()
	for i, e := range es {
		e.mu.Lock()
		if n := len(e.fans); n != 0 {
			t.Errorf("edge %d keeps %d fan-outs without places", i, n)
		}
		e.mu.Unlock()
	}
}

func TestASecondJoinIsAnsweredAndNotTold(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	watch, _ := es[0].join(t, "watch", "room", Where{})
	c := es[1].claim(t, "a")
	for range 2 {
		p, j, err := es[1].Join(t.Context(), c, "room", Where{}, func() {})
		if err != nil || fmt.Sprint(j.Members) != "[a watch]" && fmt.Sprint(j.Members) != "[watch a]" {
			t.Fatalf("join = %v, %v", j, err)
		}
		p.Close()
	}
	end := es[0].say(t, "room", "end", "end")
	if got := watch.until("watch", seen("end")); len(got) != 2 {
		t.Errorf("watch got %d events, want one roster and the end", len(got))
	}
	p, j, err := es[1].Join(t.Context(), c, "room", Where{}, func() {})
	if err != nil || j.Seq < end {
		t.Fatalf("join = %v, %v, want a position not before %d", j, err, end)
	}
	p.Close()
}

// begun waits until the fan-out has read the log's end.
func (l *listener) begun() {
	l.t.Helper()
	await.True(l.t, "the fan-out begins", func() bool {
		_, at, _ := l.place.Tail()
		return !at.IsZero()
	})
}

func TestSpaceIsFullAcrossEdges(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{MaxMembers: 5}, Config{})
	var mu sync.Mutex
	in, full := 0, 0
	var wg sync.WaitGroup
	for i := range 20 {
		e := es[i%2]
		c := e.claim(t, fmt.Sprint("a", i))
		wg.Go(func() {
			p, _, err := e.Join(t.Context(), c, "room", Where{}, func() {})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in++
				p.Close()
			case agora.AsError(err).Code == agora.SpaceFull:
				full++
			default:
				t.Errorf("join: %v", err)
			}
		})
	}
	wg.Wait()
	if in != 5 || full != 15 {
		t.Errorf("%d joined and %d were told SPACE_FULL, want 5 and 15", in, full)
	}
}

func TestSpacesComeAndGo(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{NoCreate: true})
	e, ctx := es[0], t.Context()
	c := e.claim(t, "a")
	_, _, err := e.Join(ctx, c, "room", Where{}, func() {})
	wantError(t, "join", err, agora.SpaceNotFound, "Space 'room' does not exist")
	wantError(t, "leave", e.Leave(ctx, c, "room"), agora.SpaceNotFound, "Space 'room' does not exist")
	wantError(t, "exists", e.Exists(ctx, e.tenant, "room"), agora.SpaceNotFound, "Space 'room' does not exist")
	wantError(t, "create", e.Create(ctx, e.tenant, "agent.x"), agora.Forbidden, "")
	wantError(t, "create", e.Create(ctx, e.tenant, "Room"), agora.InvalidRequest, "")
	for _, err := range []error{e.Create(ctx, e.tenant, "room"), e.Exists(ctx, e.tenant, "room"), es[1].Leave(ctx, c, "room")} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, space := range []string{"room", "agent.status", "mcp.tools"} { // system spaces need no create
		p, _, err := e.Join(ctx, c, space, Where{}, func() {})
		if err != nil {
			t.Fatalf("join %s: %v", space, err)
		}
		defer p.Close()
	}
	if got := e.list(t); got != "[{agent.status system 1} {mcp.tools system 1} {room public 1}]" {
		t.Errorf("list = %s", got)
	}
	brief := New(Config{Broker: e.log, Presence: e.store.With(func(c *presence.Config) { c.EmptyGrace = 50 * time.Millisecond })})
	defer brief.Close()
	if err := brief.Leave(ctx, c, "room"); err != nil {
		t.Fatalf("leave: %v", err)
	}
	await.True(t, "the empty space vanishes", func() bool {
		if _, err := e.store.Sweep(ctx, e.holder, 10); err != nil {
			t.Fatal(err)
		}
		return es[1].Exists(ctx, e.tenant, "room") != nil
	})
}

func TestStatusSpaceAlwaysExists(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{NoCreate: true})
	e, ctx := es[0], t.Context()
	if got := e.list(t); got != "[{agent.status system 0}]" {
		t.Errorf("list = %s, want only agent.status", got)
	}
	c := e.claim(t, "a")
	if err := e.Exists(ctx, e.tenant, StatusSpace); err != nil {
		t.Error(err)
	}
	if err := e.Leave(ctx, c, StatusSpace); err != nil {
		t.Error(err)
	}
}

func TestStatusIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{})
	watch, _ := es[1].join(t, "watch", StatusSpace, Where{})
	c := es[0].claim(t, "a")
	for _, status := range []agora.AgentStatus{agora.Online, agora.Online, agora.Updated, agora.Offline, agora.Offline} {
		if status == agora.Updated {
			if err := es[0].AnnounceStatus(t.Context(), c, status); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, e := range es {
			if err := e.AnnounceStatus(t.Context(), c, status); err != nil {
				t.Fatal(err)
			}
		}
	}
	es[0].say(t, StatusSpace, "end", "end")
	var told []string
	for _, e := range watch.until("watch", seen("end")) {
		var s struct {
			Agent, Status string
			Timestamp     int64
		}
		if json.Unmarshal(e.Body, &s) == nil && s.Timestamp > 0 {
			told = append(told, s.Agent+" "+s.Status)
		}
	}
	if got := fmt.Sprint(told); got != "[a online a updated a offline]" {
		t.Errorf("told %s, want [a online a updated a offline]", got)
	}
}

func (e *edge) list(t testing.TB) string {
	t.Helper()
	l, err := e.List(t.Context(), e.tenant)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(l)
}

func wantError(t testing.TB, what string, err error, code agora.Code, message string) {
	t.Helper()
	e := agora.AsError(err)
	if e == nil || e.Code != code || message != "" && e.Message != message {
		t.Errorf("%s: %v, want %s %q", what, err, code, message)
	}
}
