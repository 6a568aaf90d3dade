package party

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
)

// scenario is a behaviour of the core, as agents see it.
type scenario struct {
	name             string
	sender, receiver Trait // what it takes of each door
	play             func(*scene)
}

// stage is a cluster, and the scenarios that share it.
type stage struct {
	name      string
	opts      agoratest.Options
	waits     bool // they wait for most of their time, and need not take turns
	scenarios []scenario
}

// side is how many scenarios are played side by side, beside those that wait.
const side = 6

func stages() []stage {
	astray := []time.Duration{0, -time.Hour, time.Hour} // no machine's clock is to be trusted
	return []stage{
		{"calm", agoratest.Options{Grace: time.Hour, Clocks: astray}, false, slices.Concat(enterScenes, sendScenes, streamScenes, askScenes, spaceScenes)},
		{"bounds", agoratest.Options{Grace: time.Hour, Node: edge.Config{Limits: admission.Limits{Frame: lowBound}}}, false, sizeScenes},
		{"away", agoratest.Options{Grace: time.Hour, Clocks: astray}, true, slices.Concat(deadlineScenes, moveScenes, edgeScenes)},
		// One edge has no agents: it is there to sweep, which the others with their long leases do seldom.
		{"hasty", agoratest.Options{
			Edges: 4, Leases: []time.Duration{3: 2 * time.Second}, Grace: time.Second, Node: edge.Config{Probe: time.Second},
		}, true, lossScenes},
	}
}

// Play plays every scenario that each pair can, all on the same clusters. One is played with -run, by the names of
// stage, pair and scenario. Short tests play a door with itself alone.
func Play(t *testing.T, pairs []Pair) {
	if testing.Short() {
		pairs = slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return p.Sender.Name != p.Receiver.Name })
	}
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, side)
	for _, st := range stages() {
		all.Go(func() {
			t.Run(st.name, func(t *testing.T) { st.play(t, pairs, turns) })
		})
	}
}

// play plays the scenarios of a stage, side by side.
func (st stage) play(t *testing.T, pairs []Pair, turns chan struct{}) {
	st.opts.Node.Auth, st.opts.Doors, st.opts.Approvals = guests{}, opened(pairs), true
	c := agoratest.Start(t, st.opts)
	var all sync.WaitGroup
	defer all.Wait()
	for _, p := range pairs {
		all.Go(func() {
			t.Run(p.Name(), func(t *testing.T) { st.playPair(t, c, p, turns) })
		})
	}
}

func (st stage) playPair(t *testing.T, c *agoratest.Cluster, p Pair, turns chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range st.scenarios {
		sc := &st.scenarios[i]
		if !p.concerns(sc) || p.lacks(sc) != "" {
			continue // what is left out is listed: see testdata/left_out.txt
		}
		all.Go(func() {
			if !st.waits {
				turns <- struct{}{}
				defer func() { <-turns }()
			}
			tenant := strings.Join([]string{p.Sender.Name, p.Receiver.Name, string(rune('a'+i/26)) + string(rune('a'+i%26))}, "-")
			t.Run(sc.name, func(t *testing.T) { sc.play(&scene{t, c, p, tenant}) })
		})
	}
}

// opened returns how the doors of some pairs are opened, each once.
func opened(pairs []Pair) (open []func(agoratest.Entry) (agoratest.Opened, error)) {
	seen := map[string]bool{}
	for _, p := range pairs {
		for _, d := range []Door{p.Sender, p.Receiver} {
			name := cmp.Or(d.Opens, d.Name)
			if d.Open != nil && !seen[name] {
				open = append(open, d.Open)
			}
			seen[name] = true
		}
	}
	return open
}

// guests takes any token "tenant" or "tenant~name" for a principal of that tenant, which may be any agent. "limited"
// may be only those that begin with "guest-", and "shy" may not address "bob".
type guests struct{}

// Authenticate returns the principal that the token names.
func (guests) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	tenant, name, _ := strings.Cut(c.Token, "~")
	if tenant == "" {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is required")
	}
	p := edge.Principal{Name: c.Token, Tenant: tenant, Any: name != "limited"}
	switch name {
	case "limited":
		p.Agents = []string{"guest-*"}
	case "shy":
		scope, err := policy.ParseScope([]byte(`{"send":["carl"]}`))
		if err != nil {
			return p, err
		}
		p.Scope = scope
	}
	return p, nil
}
