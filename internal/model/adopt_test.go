package model

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// byName takes every token for the name of a principal that may be anybody.
type byName struct{}

func (byName) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	return edge.Principal{Name: c.Token, Any: true}, nil
}

// dialled is one agent that edges dial, and what the model knows of it.
type dialled struct {
	id      agora.AgentID
	node    *agoratest.LineNode
	stopped bool
	session string   // that it began with, which is to go on to the end
	said    []string // what was stored for it, in order
}

// nodes is one history of agents that edges dial.
type nodes struct {
	t   *testing.T
	rt  *rapid.T
	c   *agoratest.Cluster
	all []*dialled
}

// TestHistoriesOfAgentsThatEdgesDial: whatever edges die or drain, and whoever else wants their ids and addresses meanwhile, the session of each agent goes on,
// at one edge at a time: it gets all that was stored for it, in order and once, and nobody gets its address.
func TestHistoriesOfAgentsThatEdgesDial(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	for range plays {
		rapid.Check(t, func(rt *rapid.T) { dialHistory(t, rt) })
	}
}

func dialHistory(t *testing.T, rt *rapid.T) {
	t.Run("history", func(t *testing.T) { // so that its cluster ends with it
		h := &nodes{t: t, rt: rt, c: agoratest.Start(t, agoratest.Options{
			Edges: 3, Redis: true, Lines: true, Grace: 10 * time.Minute, Node: edge.Config{Lease: 3 * time.Second, Auth: byName{}, Probe: time.Second},
		})}
		for i := range rapid.IntRange(1, 4).Draw(rt, "agents") {
			d := &dialled{id: agora.AgentID(fmt.Sprint("node-", i)), node: agoratest.StartLineNode(t)}
			h.all = append(h.all, d)
			if err := h.register(d.id, "owner", d); err != nil {
				t.Fatalf("%s: %v", d.id, err)
			}
			d.session = h.view(d).Session
		}
		h.play()
		h.judge()
	})
	if t.Failed() {
		rt.FailNow()
	}
}

func (h *nodes) edge() int {
	return rapid.SampledFrom(h.c.Edges()).Draw(h.rt, "edge")
}

func (h *nodes) one() *dialled { return rapid.SampledFrom(h.all).Draw(h.rt, "agent") }

func (h *nodes) actor(k int, name string) *edge.Actor {
	a, err := h.c.Node(k).Authenticate(h.t.Context(), edge.Credentials{Token: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// register has an agent's address be named for an id, by a principal.
func (h *nodes) register(id agora.AgentID, who string, d *dialled) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
	defer cancel()
	k := h.edge()
	err := h.c.Lines(k).Register(ctx, h.actor(k, who), id, d.node.Address())
	h.t.Logf("%s is registered at edge %d by %s, at the address of %s: %v", id, k, who, d.id, err)
	return err
}

func (h *nodes) view(d *dialled) operator.AgentView {
	v, _ := operator.New(h.c.Node(h.c.Edges()[0])).InspectAgent(h.t.Context(), agora.DefaultTenant, d.id) // what can't be read is asked for again
	return v
}

// play has things happen, one after the other.
func (h *nodes) play() {
	do := map[string]func(){
		"an edge is killed": func() { h.lose("is killed", h.c.CutEdge) },
		"an edge drains":    func() { h.lose("drains", h.c.StopEdge) },
		"a process stops": func() {
			d := h.one()
			h.t.Logf("%s stops", d.id)
			d.node.Stop()
			d.stopped = true
		},
		"it starts": func() { h.start(h.one()) },
		"it registers again": func() {
			d := h.one()
			_ = h.register(d.id, "owner", d) // refused where it is connected, else it goes on
		},
		"a heartbeat": func() {
			d, k := h.one(), h.edge()
			ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Second)
			defer cancel()
			h.t.Logf("heartbeat of %s at edge %d: %v", d.id, k, h.actor(k, "owner").Adopt(ctx, d.id))
		},
		"another wants its address": func() {
			d := h.one()
			if h.register("rival-of-"+d.id, "rival", d) == nil {
				h.t.Errorf("the address of %s was given to another", d.id)
			}
		},
		"another wants its session": func() {
			d, k := h.one(), h.edge()
			if err := h.actor(k, "rival").Adopt(h.t.Context(), d.id); err == nil {
				h.t.Errorf("another principal has adopted %s", d.id)
			}
		},
		"time passes": func() { <-time.After(millis(h.rt, 0, 1500, "for")) },
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range do {
			if !yield(name) {
				return
			}
		}
	})
	for range rapid.IntRange(5, 20).Draw(h.rt, "steps") {
		do[rapid.SampledFrom(names).Draw(h.rt, "does")]()
		h.say(h.one())
		if h.t.Failed() {
			return
		}
	}
}

// lose has an edge go, and another one come.
func (h *nodes) lose(how string, end func(int)) {
	k := h.edge()
	h.c.AddEdge()
	h.t.Logf("edge %d %s", k, how)
	end(k)
}

func (h *nodes) start(d *dialled) {
	if d.stopped {
		h.t.Logf("%s starts", d.id)
		d.node.Start()
		d.stopped = false
	}
}

// say stores a message for an agent, under one name for as often as it takes.
func (h *nodes) say(d *dialled) {
	id := fmt.Sprintf("%s-%d", d.id, len(d.said))
	m := agora.Message{ID: id, To: agora.Address{Agent: d.id}, Body: fmt.Appendf(nil, "%d", len(d.said))}
	var err error
	stored := await.Within(await.Long, func() bool {
		k := h.c.Edges()[0]
		_, err = h.actor(k, "speaker").Send(h.t.Context(), "speaker", m, edge.Want{})
		return err == nil
	})
	if !stored {
		h.t.Errorf("%s was not stored: %v", id, err)
	}
	d.said = append(d.said, fmt.Sprintf("speaker %d", len(d.said)))
}

// judge waits until every agent has what was stored for it, and looks at how it came.
func (h *nodes) judge() {
	for _, d := range h.all {
		h.start(d)
		var v operator.AgentView
		if !await.Within(await.Long, func() bool {
			v = h.view(d)
			return v.Live != nil && v.Live.Begun && d.node.Connections() == 1 && len(d.node.Got()) >= len(d.said)
		}) {
			h.t.Errorf("%s has %q of %q, by %d connections: %+v", d.id, d.node.Got(), d.said, d.node.Connections(), v)
			continue
		}
		if got := d.node.Got(); !slices.Equal(got, d.said) {
			h.t.Errorf("%s got %q, want %q", d.id, got, d.said)
		}
		if again := d.node.Repeated(); len(again) > 0 {
			h.t.Errorf("%s got again, unmarked: %q", d.id, again)
		}
		if v.Session != d.session || v.Principal != "owner" {
			h.t.Errorf("%s began as session %s of owner, and is %s of %s", d.id, d.session, v.Session, v.Principal)
		}
	}
}
