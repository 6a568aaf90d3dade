package edge_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// elsewhere is the connection of an agent that is elsewhere: it says that it lives whenever it is asked.
type elsewhere struct {
	session *edge.Session
	over    sync.Once
	work    sync.WaitGroup
	closed  chan edge.Cause
}

func (e *elsewhere) Wake() {}

func (e *elsewhere) Notify(n edge.Notice) {
	if n.Kind == edge.NoticePing {
		e.session.Pong(n.Data)
	}
}

func (e *elsewhere) Close(why edge.Reason) {
	e.over.Do(func() {
		e.closed <- why.Cause
		e.work.Go(func() { e.session.Closed(false) })
	})
}

// brings has an edge open the session of an agent that a link brings.
func brings(t *testing.T, c *agoratest.Cluster, k int, l presence.Link, id agora.AgentID) (*elsewhere, error) {
	t.Helper()
	conn := &elsewhere{closed: make(chan edge.Cause, 1)}
	s, _, err := c.Node(k).Linked(l).Open(t.Context(), edge.Hello{Conn: "link", Card: agora.Agent{ID: id, Name: "from " + l.Address}}, conn)
	if err == nil {
		conn.session = s
		s.Begin()
		t.Cleanup(func() {
			conn.Close(edge.Reason{Cause: edge.Goodbye})
			conn.work.Wait()
		})
	}
	return conn, err
}

var linkMade = time.UnixMicro(1_700_000_000_000_000)

func link(address string, after time.Duration) presence.Link {
	return presence.Link{Tenant: agora.DefaultTenant, Address: address, Since: linkMade.Add(after)}
}

// Anyone who comes here by itself has at once the id of an agent that a link has brought, though that lives, whichever
// way it comes, and whatever edge holds which.
func TestALinkedAgentMakesRoomForOneThatIsHere(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Lines: true, Node: edge.Config{Probe: await.Long}, Grace: time.Hour})
	for way, comes := range map[string]func(t *testing.T, k int, id string){
		"by a socket": func(t *testing.T, k int, id string) { registered(t, c, k, id) },
		"dialled":     func(t *testing.T, k int, id string) { dialled(t, c, k, agora.AgentID(id), agoratest.StartLineNode(t)) },
		"without a connection": func(t *testing.T, k int, id string) {
			if _, err := actor(t, c, k).Register(t.Context(), cardOf(agora.AgentID(id)), time.Hour); err != nil {
				t.Fatal(err)
			}
		},
		"by an older link": func(t *testing.T, k int, id string) {
			if _, err := brings(t, c, k, link("old:1", 0), agora.AgentID(id)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for k, where := range []string{"here", "there"} {
			id := strings.ReplaceAll(way, " ", "-") + "-" + where
			conn, err := brings(t, c, 0, link("young:1", time.Second), agora.AgentID(id))
			if err != nil {
				t.Fatal(err)
			}
			comes(t, k, id)
			if why := <-conn.closed; why != edge.TakenOver {
				t.Errorf("%s: what the link has brought ends as %s", id, why)
			}
			conn.work.Wait()
			if _, err := brings(t, c, 1-k, link("young:1", time.Second), agora.AgentID(id)); code(err) != agora.AgentExists {
				t.Errorf("%s: brought again it is %v", id, err)
			}
			if got, err := actor(t, c, 1-k).Directory().Card(t.Context(), agora.AgentID(id)); err != nil || got.Name == "from young:1" {
				t.Errorf("%s: the directory shows %+v, %v", id, got, err)
			}
		}
	}
}

// What a link has brought continues where another edge holds the link, as the same session.
func TestALinkedAgentGoesOnAtAnotherEdge(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Grace: time.Hour})
	first, err := brings(t, c, 0, link("a:1", 0), "x")
	if err != nil {
		t.Fatal(err)
	}
	first.Close(edge.Reason{Cause: edge.Drained})
	first.work.Wait()
	second, err := brings(t, c, 1, link("a:1", 0), "x")
	if err != nil {
		t.Fatal(err)
	}
	if first.session.ID() != second.session.ID() {
		t.Error("it is another session")
	}
}

// Nobody's rules bind a link, and nobody is taken for one.
func TestNobodyIsALink(t *testing.T) {
	t.Parallel()
	l := link("a:1", 0)
	p := new(policy.Policy)
	rules, err := policy.Parse([]byte("rules:\n- {name: none, who: {names: [nobody]}, agents: [nobody]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.Set(rules)
	d := newDesk(map[string]edge.Principal{"cheat": {Name: l.Principal(), Any: true}})
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{Auth: d, Policy: p}})
	if _, err := c.Node(0).Authenticate(t.Context(), edge.Credentials{Token: "cheat"}); code(err) != agora.Unauthorized {
		t.Errorf("who has the name of a link is %v", err)
	}
	if _, err := brings(t, c, 0, l, "x"); err != nil {
		t.Error(err)
	}
	if _, err := c.Node(0).Linked(l).Directory().All(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDoorsOfADialectAskEachOther(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 3, Leases: []time.Duration{0, 0, endless}})
	for k := range 2 {
		stop, err := c.Node(k).HearPeers("x", func(_ context.Context, q []byte) []byte { return append([]byte{'0' + byte(k)}, q...) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	ask := func(k int, dialect string) string {
		t.Helper()
		answers, err := c.Node(k).AskPeers(t.Context(), dialect, []byte("?"))
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, a := range answers {
			all = append(all, string(a))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	await.True(t, "all edges know of each other", func() bool { return ask(2, "x") == "0? 1?" })
	if got := ask(0, "x"); got != "1?" {
		t.Errorf("one of them hears %q", got)
	}
	if got := ask(0, "y"); got != "" {
		t.Errorf("of another dialect it hears %q", got)
	}
	c.CutEdge(1)
	await.True(t, "who is gone is passed over", func() bool { return ask(2, "x") == "0?" })
	c.CutPresence(2)
	if _, err := c.Node(2).AskPeers(t.Context(), "x", nil); code(err) != agora.Unavailable {
		t.Errorf("without presence it is %v", err)
	}
}
