package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const (
	speakers = 8
	perActor = 12 // messages and events of each
)

// said is one thing that an actor has said: its place in what that one says.
type said struct{ Who, I int }

// heard is what came to those who listen, by the way it took.
type heard struct {
	mu   sync.Mutex // guards the fields below
	mail []said
	room []said
}

func (h *heard) add(to *[]said, body json.RawMessage) {
	var s said
	if json.Unmarshal(body, &s) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, s)
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mail) + len(h.room)
}

// Actors speak for an agent at random edges while those die, the one of its session among them, and say again under its name what they have no answer
// to. All of it comes once, and what each of them says in its order.
func TestActsAreDoneOnceAndInOrderThoughTheSessionMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Edges: 2, Redis: true, Grace: time.Minute, Node: edge.Config{Lease: 4 * time.Second, Heartbeat: time.Minute},
	})
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	doomed := []int{c.AddDoomed(4 * time.Second), c.AddDoomed(4 * time.Second)}
	anna := connected(ctx, t, client.Config{URLs: []string{c.URL(doomed[0]), c.URL(doomed[1]), c.URL(0)}, Agent: "anna"})
	bob := connected(ctx, t, client.Config{URLs: []string{c.URL(1)}, Agent: "bob"})
	if _, err := anna.Join(ctx, "lobby"); err != nil {
		t.Fatal(err)
	}
	lobby, err := bob.Join(ctx, "lobby")
	if err != nil {
		t.Fatal(err)
	}
	var got heard
	var listening, speaking sync.WaitGroup
	listening.Go(func() {
		for m, err := range bob.Messages(ctx) {
			if err != nil {
				return
			}
			got.add(&got.mail, m.Payload)
		}
	})
	listening.Go(func() {
		for e, err := range lobby.Events(ctx) {
			if err != nil {
				return
			}
			if e.Roster == nil {
				got.add(&got.room, e.Data)
			}
		}
	})
	for who := range speakers {
		speaking.Go(func() {
			for i := range perActor {
				if err := act(ctx, c, said{who, i}); err != nil {
					t.Errorf("%+v: %v", said{who, i}, err)
					return
				}
			}
		})
	}
	for n, k := range doomed {
		await.True(t, "some is heard", func() bool { return got.count() > (n+1)*speakers*perActor/4 })
		c.CutEdge(k)
	}
	speaking.Wait()
	await.True(t, "all that is stored is heard", func() bool { return t.Failed() || got.count() >= speakers*perActor })
	cancel()
	listening.Wait()
	for about, way := range map[string][]said{"mail": got.mail, "events": got.room} {
		for who := range speakers {
			of := slices.DeleteFunc(slices.Clone(way), func(s said) bool { return s.Who != who })
			var want []said
			for i := range perActor {
				if s := (said{who, i}); inSpace(s) == (about == "events") {
					want = append(want, s)
				}
			}
			if !slices.Equal(of, want) {
				t.Errorf("%s of actor %d came as %+v", about, who, of)
			}
		}
	}
}

// inSpace reports whether something is said in the space, and not to bob.
func inSpace(s said) bool { return s.Who%2 == 1 }

func connected(ctx context.Context, t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// act says something at random edges, under one name, until it is stored.
func act(ctx context.Context, c *agoratest.Cluster, s said) error {
	body, id := fmt.Appendf(nil, `{"Who":%d,"I":%d}`, s.Who, s.I), fmt.Sprintf("m-%d-%d", s.Who, s.I)
	for {
		all := c.Edges()
		n := c.Node(all[rand.IntN(len(all))])
		who, err := n.Authenticate(ctx, edge.Credentials{})
		if err == nil && inSpace(s) {
			_, err = who.Publish(ctx, "anna", "lobby", body, edge.Want{RequestID: id})
		} else if err == nil {
			_, err = who.Send(ctx, "anna", agora.Message{ID: id, Kind: agora.Request, To: agora.Address{Agent: "bob"}, Body: body}, edge.Want{})
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case agora.AsError(err).Code != agora.Unavailable:
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
