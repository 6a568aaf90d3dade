package agoratest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/await"
)

// scene is what one scenario plays in: a cluster that it shares with others,
// and a tenant of its own, so that every scenario may use the ids of the examples.
type scene struct {
	*testing.T
	*Cluster
	dialer Dialer
	tenant string
	tokens map[string]string // of the agents that entered, by id
}

// scenario is a behaviour of the protocol, seen from sockets.
type scenario struct {
	name string
	play func(*scene)
}

// company is the scenarios that share a cluster.
type company struct {
	name      string
	opts      Options
	waits     bool // they wait for most of their time, and need not take turns
	scenarios []scenario
}

// side is how many scenarios of the suite run side by side, beside those that wait.
const side = 6

// RunDoorSuite plays every scenario of Agora relay and Agora spaces against
// edges that the dialer reaches: examples of the seeds literally, then what
// becomes of messages when connections, agents and edges go. Sender and receiver stand
// at different edges. One scenario is played with -run TestDoor//its_name.
func RunDoorSuite(t *testing.T, d Dialer) {
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, side)
	for _, co := range companies() {
		all.Go(func() {
			t.Run(co.name, func(t *testing.T) { co.play(t, d, turns) })
		})
	}
}

// play plays the scenarios of a company, side by side.
func (co company) play(t *testing.T, d Dialer, turns chan struct{}) {
	co.opts.Node.Auth, co.opts.Door.Linger = tenants{}, patience
	c := Start(t, co.opts)
	var all sync.WaitGroup
	defer all.Wait()
	for i, sc := range co.scenarios {
		all.Go(func() {
			if !co.waits {
				turns <- struct{}{}
				defer func() { <-turns }()
			}
			tenant := co.name + "-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			t.Run(sc.name, func(t *testing.T) { sc.play(&scene{t, c, d, tenant, nil}) })
		})
	}
}

// companies are the clusters that the scenarios need, and the scenarios.
func companies() []company {
	calm := slices.Concat(flowScenes,
		relayScenes, registerScenes, errorScenes, identityScenes, mailboxScenes, receiptScenes, numberScenes,
		resumeScenes, streamScenes, fidelityScenes, spaceScenes, eventScenes, systemScenes, toolScenes, handoffScenes,
	)
	// No machine's clock is to be trusted.
	astray := []time.Duration{0, -time.Hour, time.Hour}
	return []company{
		// One edge has no agents: it is there to sweep, which the others with their long leases do seldom.
		{"hasty", Options{
			Edges: 4, Leases: []time.Duration{3: 2 * time.Second}, Grace: time.Second, EmptyGrace: time.Second, Node: edge.Config{Probe: time.Second},
		}, true, hastyScenes},
		// One edge closes connections without a sign of life soon.
		{"brief", Options{Edges: 3, Grace: time.Hour, Node: edge.Config{MaxAge: 6 * time.Second, Heartbeat: 200 * time.Millisecond}, Tune: func(k int, c *edge.Config) {
			if k == 2 {
				c.Timeout = 8 * time.Second
			}
		}}, true, briefScenes},
		{"timely", Options{Grace: time.Hour, Clocks: astray}, true, slices.Concat(deadlineScenes, lateToolScenes, lateHandoffScenes, deathScenes)},
		{"strict", Options{
			Edges: 2, MaxMembers: 2, Grace: time.Hour, Door: ws.Config{MaxMessage: 256 << 10},
			Node: edge.Config{MailboxOff: true, NoAutoCreate: true, Limits: admission.Limits{Frame: 64 << 10}},
		}, false, strictScenes},
		{"rated", Options{Edges: 2, Grace: time.Hour, Node: edge.Config{Limits: admission.Limits{Rate: 4, Burst: 1}}}, true, ratedScenes},
		{"small", Options{Edges: 2, Grace: time.Hour, Node: edge.Config{MaxRecords: 16}}, false, smallScenes},
		{"calm", Options{Grace: time.Hour, Clocks: astray}, false, calm},
	}
}

// tenants takes any token "tenant" or "tenant~name" for a principal of that
// tenant, which may be any agent. The name "system" may publish into system
// spaces, and "limited" may be only agent-1 and those that begin with "bot-".
type tenants struct{}

// Authenticate returns the principal that the token names.
func (tenants) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	tenant, name, _ := strings.Cut(c.Token, "~")
	if tenant == "" {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is required")
	}
	p := edge.Principal{Name: c.Token, Tenant: tenant, Any: name != "limited", System: name == "system"}
	if !p.Any {
		p.Agents = []string{"agent-1", "bot-*"}
	}
	return p, nil
}

// open connects to edge k with a query: pairs of key and value.
func (s *scene) open(k int, query ...string) *Client {
	s.Helper()
	return Connect(s.T, s.dialer, s.URL(k), s.query(query), nil)
}

func (s *scene) query(pairs []string) string {
	q := url.Values{"token": {s.tenant}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}

// agent connects to edge k as an agent.
func (s *scene) agent(k int, id string, query ...string) *Client {
	s.Helper()
	c, _ := s.enter(k, id, query...)
	return c
}

// enter connects to edge k as an agent, and returns what it is welcomed with too. An agent that is asked to come back
// later does. One that was there before continues with its session by its token, unless the query has another one: an
// empty one is none.
func (s *scene) enter(k int, id string, query ...string) (*Client, Frame) {
	s.Helper()
	welcome := `{"type":"agent.registered","agent":{"id":` + Quote(id) + `,"connection_id":"<any>"}}`
	if token := s.tokens[id]; token != "" && !slices.Contains(query, "resume_token") {
		query = append([]string{"resume_token", token}, query...)
	}
	c, f := s.ask(k, id, func(f Frame) bool { return f.Text("code") != "UNAVAILABLE" }, query)
	if d := f.Match(welcome); d != "" {
		s.Fatalf("got  %.500s\nwant %.500s\n%.300s", f, welcome, d)
	}
	if s.tokens == nil {
		s.tokens = map[string]string{}
	}
	s.tokens[id] = f.Text("resume_token")
	return c, f
}

// ask connects to edge k as an agent until it is content with what it is answered, and returns the last answer.
func (s *scene) ask(k int, id string, content func(Frame) bool, query []string) (c *Client, answer Frame) {
	s.Helper()
	await.Within(patience, func() bool {
		c = s.open(k, append([]string{"agent_id", id}, query...)...)
		var ok bool
		if answer, ok = c.Next(patience); ok && content(answer) {
			return true
		}
		c.Drop()
		<-time.After(100 * time.Millisecond)
		return false
	})
	return c, answer
}

// pair connects agent-1 to edge 0 and agent-2 to edge 1.
func (s *scene) pair() (a, b *Client) {
	s.Helper()
	return s.agent(0, "agent-1"), s.agent(1, "agent-2")
}

// away waits until the directory shows an agent no more; c asks.
func (s *scene) away(c *Client, id string) {
	s.Helper()
	c.Until(id+" leaves the directory", func() bool {
		c.Send(`{"type":"list"}`)
		return !strings.Contains(string(c.Expect(`{"type":"agents"}`)), `"id":`+Quote(id))
	})
}

// members joins agents to a space, one after the other, and reads the rosters; all are at different edges.
func (s *scene) members(space string, agents ...*Client) {
	s.Helper()
	for i, c := range agents {
		c.Send(`{"type":"space.join","space":` + Quote(space) + `}`)
		c.Expect(`{"type":"space.joined","space":` + Quote(space) + `}`)
		for _, before := range agents[:i] {
			before.Expect(`{"type":"space.members","space":` + Quote(space) + `}`)
		}
	}
}
