package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// cluster is a real cluster behind proxies.
type cluster struct {
	*agoratest.Cluster
	t       *testing.T
	proxies []*faultnet.Proxy
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: agoratest.Start(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}}), t: t}
	for k := range c.Size() {
		c.proxies = append(c.proxies, faultnet.NewProxy(t, host(t, c.URL(k))))
	}
	return c
}

// host returns what an edge's URL names.
func host(t *testing.T, edge string) string {
	t.Helper()
	u, err := url.Parse(edge)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// dial connects an agent through the proxies.
func (c *cluster) dial(id string) *client.Client {
	c.t.Helper()
	cfg := client.Config{Agent: id, Patience: time.Hour, Stall: time.Hour, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond}}
	cfg.Log = slog.New(slog.NewTextHandler(c.t.Output(), nil))
	cfg.OnGap = func(g client.Gap) { c.t.Errorf("%s is told of a gap: %+v", id, g) }
	for _, p := range c.proxies {
		cfg.URLs = append(cfg.URLs, "ws://"+p.Addr())
	}
	a, err := client.Dial(await.Context(c.t), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { a.Close() })
	return a
}

// cut breaks all connections to one of the edges.
func (c *cluster) cut() { c.proxies[rand.IntN(len(c.proxies))].Reset() }

// TestAllArrivesOnceAndInOrderThroughCuts has agents cut connections, everybody's, in the midst of what they send.
func TestAllArrivesOnceAndInOrderThroughCuts(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	t.Run("all at once", func(t *testing.T) {
		for about, carry := range map[string]func(*testing.T, *cluster){
			"a stream": streams, "messages": messages, "requests and their replies": requests, "events": events,
			"calls of tools": tools, "handoffs": handoffs,
		} {
			t.Run(about, func(t *testing.T) {
				t.Parallel()
				carry(t, &cluster{c.Cluster, t, c.proxies})
			})
		}
	})
}

func streams(t *testing.T, c *cluster) {
	sender, listener := c.dial("pourer"), c.dial("reader")
	var text strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&text, "%d é😀\n", i) // shows what is missing
	}
	want := text.String()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if err := c.pour(await.Context(t), sender, want); err != nil {
			t.Errorf("stream: %v", err)
		}
	})
	for m, err := range listener.Messages(await.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Text(await.Context(t))
		if err != nil || got != want {
			t.Errorf("got %d bytes, want %d: they part at %d: %v", len(got), len(want), parting(got, want), err)
		}
		break
	}
}

// pour streams text in small pieces, and cuts now and then.
func (c *cluster) pour(ctx context.Context, a *client.Client, text string) error {
	s, err := a.OpenStream(ctx, "reader", map[string]string{"title": "numbers"})
	if err != nil {
		return err
	}
	for i := 1; len(text) > 0; i++ {
		n := min(len(text), 37)
		if _, err := s.Write([]byte(text[:n])); err != nil {
			return err
		}
		if text = text[n:]; i%100 == 0 {
			c.cut()
		}
	}
	return s.Close()
}

func parting(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func messages(t *testing.T, c *cluster) {
	const n = 600
	sender, listener := c.dial("sender"), c.dial("listener")
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range n {
			p, err := sender.SendAsync(await.Context(t), "listener", i)
			if err != nil {
				t.Errorf("send %d: %v", i, err)
				return
			}
			if i%100 == 50 {
				c.cut()
			}
			if i%50 == 49 {
				if err := p.Wait(await.Context(t)); err != nil {
					t.Errorf("send %d: %v", i, err)
				}
			}
		}
	})
	i := 0
	for m, err := range listener.Messages(await.Context(t)) {
		if err != nil {
			t.Fatalf("after %d messages: %v", i, err)
		}
		if string(m.Payload) != fmt.Sprint(i) {
			t.Fatalf("got %s, want %d", m.Payload, i)
		}
		if i++; i == n {
			break
		}
	}
}

func requests(t *testing.T, c *cluster) {
	asker, server := c.dial("asker"), c.dial("server")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		server.Handle(ctx, func(ctx context.Context, m *client.Message) {
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				t.Errorf("reply: %v", err)
				return
			}
			for i := range 20 {
				s.WriteString("tok ")
				if i == 10 && rand.IntN(4) == 0 {
					c.cut()
				}
			}
			if err := s.Close(); err != nil && ctx.Err() == nil {
				t.Errorf("close: %v", err)
			}
		})
	})
	for i := range 20 {
		m, err := asker.Request(await.Context(t), "server", map[string]int{"i": i})
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		text, err := m.Text(await.Context(t))
		if err != nil || text != strings.Repeat("tok ", 20) {
			t.Fatalf("reply %d is %q, %v", i, text, err)
		}
	}
}

func tools(t *testing.T, c *cluster) {
	calls(t, c, "machine", `"tool_name":"count","arguments":%d}`, func(caller *client.Client, i int) (*client.Call, error) {
		return caller.CallTool(await.Context(t), "machine", "count", i)
	})
}

func handoffs(t *testing.T, c *cluster) {
	calls(t, c, "server-of-paths", `"method":"POST","path":"/count","params":{},"input_data":%d}`, func(caller *client.Client, i int) (*client.Call, error) {
		return caller.Handoff(await.Context(t), "server-of-paths", client.Handoff{Path: "/count", Input: i})
	})
}

// calls makes calls of an agent that answers in pieces, and with what it was asked at the end.
func calls(t *testing.T, c *cluster, to, want string, make func(caller *client.Client, i int) (*client.Call, error)) {
	caller, machine := c.dial("caller-of-"+to), c.dial(to)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		machine.Handle(ctx, func(ctx context.Context, m *client.Message) {
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				t.Errorf("reply: %v", err)
				return
			}
			for i := range 20 {
				s.WriteString("tok ")
				if i == 10 && rand.IntN(4) == 0 {
					c.cut()
				}
			}
			if err := s.CloseWith(m.Payload); err != nil && ctx.Err() == nil {
				t.Errorf("close: %v", err)
			}
		})
	})
	for i := range 20 {
		call, err := make(caller, i)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		var text strings.Builder
		for a, err := range call.Chunks() {
			if err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			fmt.Fprintf(&text, "%s", a.Body)
		}
		a, err := call.Result(await.Context(t))
		if want := fmt.Sprintf(want, i); err != nil || !strings.HasSuffix(string(a.Body), want) {
			t.Fatalf("call %d has the result %s, %v", i, a.Body, err)
		}
		if text.String() != strings.Repeat(`"tok "`, 20) {
			t.Fatalf("call %d is answered by %s", i, text.String())
		}
	}
}

func events(t *testing.T, c *cluster) {
	const each = 60
	members := []*client.Client{c.dial("m0"), c.dial("m1"), c.dial("m2")}
	var rooms []*client.Space
	for _, m := range members {
		s, err := m.Join(await.Context(t), "general")
		if err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, s)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range rooms[:2] {
		wg.Go(func() {
			for i := range each {
				if err := publish(await.Context(t), s, i); err != nil {
					t.Errorf("publish %d: %v", i, err)
				}
				if i%20 == 10 {
					c.cut()
				}
			}
		})
	}
	seen := make([][]string, len(rooms))
	var reading sync.WaitGroup
	for k, s := range rooms {
		reading.Go(func() { seen[k] = collect(t, s, 2*each) })
	}
	reading.Wait()
	for k := 1; k < len(seen); k++ {
		if !slices.Equal(seen[k], seen[0]) {
			t.Errorf("member %d saw another order than member 0", k)
		}
	}
}

// publish publishes an event, every tenth as a stream.
func publish(ctx context.Context, s *client.Space, i int) error {
	if i%10 != 0 {
		return s.PublishText(ctx, fmt.Sprint(i))
	}
	st, err := s.Stream(ctx, nil)
	if err != nil {
		return err
	}
	for _, r := range fmt.Sprint(i) {
		st.WriteString(string(r))
	}
	return st.Close()
}

// collect returns n events of a space, and complains where one is missing or out of its publisher's order.
func collect(t *testing.T, s *client.Space, n int) (all []string) {
	next := map[string]int{}
	for e, err := range s.Events(await.Context(t)) {
		if err != nil {
			t.Errorf("%s has %d of %d events: %v", s.Name(), len(all), n, err)
			return all
		}
		if e.Roster != nil {
			continue
		}
		text, err := e.Text(await.Context(t))
		if err != nil {
			t.Errorf("event of %s: %v", e.From, err)
		}
		if want := fmt.Sprint(next[e.From]); text != want {
			t.Errorf("event of %s is %q, want %q", e.From, text, want)
		}
		next[e.From]++
		if all = append(all, e.From+" "+text); len(all) == n {
			return all
		}
	}
	return all
}

func TestWhatTheClusterSaysOfItself(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := c.dial("a")
	if _, err := a.Join(await.Context(t), "general"); err != nil {
		t.Fatal(err)
	}
	nobody, err := client.Dial(await.Context(t), client.Config{URLs: []string{c.URL(1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	agents, err := nobody.Agents(await.Context(t))
	if err != nil || len(agents) != 1 || agents[0].ID != "a" || agents[0].RegisteredAt.IsZero() {
		t.Fatalf("agents = %+v, %v", agents, err)
	}
	spaces, err := nobody.Spaces(await.Context(t))
	if err != nil || len(spaces) != 2 {
		t.Fatalf("spaces = %+v, %v", spaces, err)
	}
	for _, s := range spaces {
		if s.Name == "general" && (s.Type != "public" || s.Members != 1) {
			t.Fatalf("general = %+v", s)
		}
	}
}

func TestAnIDHasOneAgent(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.dial("a")
	_, err := client.Dial(await.Context(t), client.Config{URLs: []string{c.URL(1)}, Agent: "a"})
	if e, ok := errors.AsType[*agora.Error](err); !ok || e.Code != agora.AgentExists {
		t.Fatalf("Dial = %v, want AGENT_EXISTS", err)
	}
}

func TestMailWaitsForAnAgentAndComesOnce(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	sender, away := c.dial("sender"), c.dial("away")
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := sender.Send(await.Context(t), "away", i); err != nil {
			t.Fatal(err)
		}
	}
	back := c.dial("away")
	take(t, back, "0", "1")
	back.Close()
	take(t, c.dial("away"), "2")
}

// take takes messages with those payloads, and no more.
func take(t *testing.T, a *client.Client, payloads ...string) {
	t.Helper()
	for m, err := range a.Messages(await.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(m.Payload) || string(m.Payload) != payloads[0] {
			t.Fatalf("got %s, want %s", m.Payload, payloads[0])
		}
		if payloads = payloads[1:]; len(payloads) == 0 {
			return
		}
	}
}
