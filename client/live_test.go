package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
)

// cluster is a real cluster behind proxies.
type cluster struct {
	*agoratest.Cluster
	t       *testing.T
	proxies []*proxy
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: agoratest.Start(t, agoratest.Options{Grace: 20 * time.Second}), t: t}
	for k := range c.Size() {
		c.proxies = append(c.proxies, newProxy(t, c.URL(k)))
	}
	return c
}

// dial connects an agent through the proxies.
func (c *cluster) dial(id string) *client.Client {
	c.t.Helper()
	cfg := client.Config{Agent: id, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond}}
	cfg.Log = slog.New(slog.NewTextHandler(c.t.Output(), nil))
	cfg.OnGap = func(g client.Gap) { c.t.Errorf("%s is told of a gap: %+v", id, g) }
	for _, p := range c.proxies {
		cfg.URLs = append(cfg.URLs, p.url())
	}
	a, err := client.Dial(liveCtx(c.t), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { a.Close() })
	return a
}

// storm cuts connections until the returned function is called; more rarely as it lasts, as a busy machine may need longer than that
// for a connection, and nothing would ever get through.
func (c *cluster) storm(every time.Duration) (stop func()) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for begin := time.Now(); ; {
			select {
			case <-time.After(max(every, time.Since(begin)/20)):
				c.proxies[rand.IntN(len(c.proxies))].cut()
			case <-end:
				return
			}
		}
	})
	return func() { close(end); wg.Wait() }
}

func liveCtx(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// numbers returns a text that shows what is missing of it.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d é😀\n", i)
	}
	return b.String()
}

// rounds is fewer when time is short.
func rounds(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

func TestStreamIsWholeThroughCuts(t *testing.T) {
	c := startCluster(t)
	sender, listener := c.dial("sender"), c.dial("listener")
	want := numbers(rounds(20000))
	stop := c.storm(150 * time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := pour(liveCtx(t), sender, want); err != nil {
			t.Errorf("stream: %v", err)
		}
	})
	got := ""
	for m, err := range listener.Messages(liveCtx(t)) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.Text(liveCtx(t))
		if err != nil {
			t.Errorf("after %d bytes: %v", len(text), err)
		}
		got = text
		break
	}
	stop()
	wg.Wait()
	if got != want {
		t.Fatalf("got %d bytes, want %d: they part at %d", len(got), len(want), parting(got, want))
	}
}

// pour streams text in small pieces, some of a second's worth.
func pour(ctx context.Context, a *client.Client, text string) error {
	s, err := a.OpenStream(ctx, "listener", map[string]string{"title": "numbers"})
	if err != nil {
		return err
	}
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), 37)
		if _, err := s.Write([]byte(text[:n])); err != nil {
			return err
		}
		text = text[n:]
		if i%50 == 0 {
			<-time.After(10 * time.Millisecond) // so that cuts fall into it
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

func TestMessagesArriveOnceAndInOrderThroughCuts(t *testing.T) {
	c := startCluster(t)
	sender, listener := c.dial("sender"), c.dial("listener")
	n := rounds(3000)
	stop := c.storm(100 * time.Millisecond)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		var last *client.Pending
		for i := range n {
			p, err := sender.SendAsync(liveCtx(t), "listener", i)
			if err != nil {
				t.Errorf("send %d: %v", i, err)
				return
			}
			if last = p; i%50 == 0 {
				if err := p.Wait(liveCtx(t)); err != nil {
					t.Errorf("send %d: %v", i, err)
				}
			}
		}
		if err := last.Wait(liveCtx(t)); err != nil {
			t.Error(err)
		}
	})
	i := 0
	for m, err := range listener.Messages(liveCtx(t)) {
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

func TestEdgesDrainAndDieUnderAStream(t *testing.T) {
	c := startCluster(t)
	c.AddEdge()
	c.proxies = append(c.proxies, newProxy(t, c.URL(3)))
	sender, listener := c.dial("sender"), c.dial("listener")
	var wg sync.WaitGroup
	want := numbers(rounds(20000))
	wg.Go(func() {
		if err := pour(liveCtx(t), sender, want); err != nil {
			t.Errorf("stream: %v", err)
		}
	})
	wg.Go(func() {
		<-time.After(100 * time.Millisecond)
		c.StopEdge(0)
		c.CutEdge(1)
		c.proxies[1].cut()
		<-time.After(200 * time.Millisecond)
		c.StopEdge(2)
	})
	for m, err := range listener.Messages(liveCtx(t)) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Text(liveCtx(t))
		if err != nil || got != want {
			t.Errorf("got %d bytes, want %d, they part at %d: %v", len(got), len(want), parting(got, want), err)
		}
		break
	}
	wg.Wait()
}

func TestRequestsAreAnsweredThroughCuts(t *testing.T) {
	c := startCluster(t)
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
			for range 20 {
				s.WriteString("tok ")
			}
			if err := s.Close(); err != nil && ctx.Err() == nil {
				t.Errorf("close: %v", err)
			}
		})
	})
	stop := c.storm(200 * time.Millisecond)
	defer stop()
	for i := range rounds(100) {
		m, err := asker.Request(liveCtx(t), "server", map[string]int{"i": i})
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		text, err := m.Text(liveCtx(t))
		if err != nil || text != strings.Repeat("tok ", 20) {
			t.Fatalf("reply %d is %q, %v", i, text, err)
		}
	}
}

func TestMembersSeeEveryEventOnceAndInOneOrderThroughCuts(t *testing.T) {
	c := startCluster(t)
	n := rounds(500)
	members := []*client.Client{c.dial("m0"), c.dial("m1"), c.dial("m2")}
	var rooms []*client.Space
	for _, m := range members {
		s, err := m.Join(liveCtx(t), "general")
		if err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, s)
	}
	stop := c.storm(150 * time.Millisecond)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range rooms[:2] {
		wg.Go(func() {
			for i := range n / 2 {
				if err := publish(liveCtx(t), s, i); err != nil {
					t.Errorf("publish %d: %v", i, err)
				}
			}
		})
	}
	seen := make([][]string, len(rooms))
	var reading sync.WaitGroup
	for k, s := range rooms {
		reading.Go(func() { seen[k] = collect(t, s, n/2*2) })
	}
	reading.Wait()
	for k := 1; k < len(seen); k++ {
		if strings.Join(seen[k], "\n") != strings.Join(seen[0], "\n") {
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
	for e, err := range s.Events(liveCtx(t)) {
		if err != nil {
			t.Errorf("%s has %d of %d events: %v", s.Name(), len(all), n, err)
			return all
		}
		if e.Roster != nil {
			continue
		}
		text, err := e.Text(liveCtx(t))
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
	c := startCluster(t)
	a := c.dial("a")
	if _, err := a.Join(liveCtx(t), "general"); err != nil {
		t.Fatal(err)
	}
	nobody, err := client.Dial(liveCtx(t), client.Config{URLs: []string{c.URL(1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	agents, err := nobody.Agents(liveCtx(t))
	if err != nil || len(agents) != 1 || agents[0].ID != "a" || agents[0].RegisteredAt.IsZero() {
		t.Fatalf("agents = %+v, %v", agents, err)
	}
	spaces, err := nobody.Spaces(liveCtx(t))
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
	c := startCluster(t)
	c.dial("a")
	_, err := client.Dial(liveCtx(t), client.Config{URLs: []string{c.URL(1)}, Agent: "a"})
	if e, ok := errors.AsType[*agora.Error](err); !ok || e.Code != agora.AgentExists {
		t.Fatalf("Dial = %v, want AGENT_EXISTS", err)
	}
}

func TestMailWaitsForAnAgentAndComesOnce(t *testing.T) {
	c := startCluster(t)
	sender, away := c.dial("sender"), c.dial("away")
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := sender.Send(liveCtx(t), "away", i); err != nil {
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
	for m, err := range a.Messages(liveCtx(t)) {
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
