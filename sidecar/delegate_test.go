package sidecar_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
)

// TestADelegationGoesThroughTheAgentsPlaceAndByANewOneOnceThatIsDead has an agent at one edge find another one, ask for
// its card, choose it, and have its work done, where that has a place at another edge and is reached nowhere else; and
// again when this edge is dead.
func TestADelegationGoesThroughTheAgentsPlaceAndByANewOneOnceThatIsDead(t *testing.T) {
	t.Parallel()
	s := openSite(t, 1, p2p.Relay{Off: true}) // anna's edge, which is no relay
	anna := s.delegator("anna", 0)
	doomed := s.AddDoomed(time.Second)
	p := newPlain(t)
	r := s.run(p, func(c *sidecar.Config) { c.Peer.Listen = "none" })
	placed := func(k int) bool {
		id := s.door(k).ID().String()
		return slices.ContainsFunc(s.registered().Addresses, func(a string) bool { return strings.Contains(a, id) })
	}
	await.True(t, "the agent has its place, and nothing else", func() bool {
		return placed(doomed) && !slices.ContainsFunc(s.registered().Addresses, direct) && s.showsPeer()
	})
	if err := delegates(anna); err != nil {
		t.Errorf("through the first place: %v", err)
	}
	await.True(t, "the card and the handoff came by libp2p", func() bool { return r.peerRequests() == 2 })
	s.CutEdge(doomed)
	next := s.AddEdge()
	await.True(t, "a delegation comes through by the new place", func() bool {
		if err := delegates(anna); err != nil {
			t.Logf("meanwhile: %v", err)
			return false
		}
		return placed(next) && !placed(doomed) && r.peerRequests() >= 4 // the others are mail, as long as there is no place
	})
}

// delegator connects an agent to an edge alone, by the door that asks peers.
func (s *site) delegator(id string, edge int) *client.Client {
	s.t.Helper()
	at := strings.TrimSuffix(s.URL(edge), "/ws") + "/asks"
	c, err := client.Dial(await.Context(s.t), client.Config{URLs: []string{at}, Agent: id, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// delegates has greeting be done by whoever can.
func delegates(c *client.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Long/4) // what hangs is tried again
	defer cancel()
	choose := func(all []client.Candidate, _ *client.Handoff) (string, error) {
		for _, one := range all {
			if string(one.Card) == card {
				return string(one.ID), nil
			}
		}
		return "", errors.New("nobody has the card of the agent")
	}
	call, err := c.Delegate(ctx, client.Query{Skill: "greet"}, choose, client.Handoff{Params: map[string]string{"name": "Ada B"}, Input: json.RawMessage(`{"a": 1.0}`)})
	if err != nil {
		return err
	}
	defer call.Close()
	a, err := call.Result(ctx)
	if err != nil {
		return err
	}
	if got := string(a.Body); !strings.HasSuffix(got, strings.TrimPrefix(greeting, "{")) {
		return fmt.Errorf("the result is %s, want %s", got, greeting)
	}
	return nil
}

// peerRequests returns how many cards and handoffs the sidecar was asked for by libp2p.
func (r *running) peerRequests() (n int) {
	r.s.t.Helper()
	q, err := http.NewRequestWithContext(await.Context(r.s.t), http.MethodGet, r.admin+"/metrics", nil)
	if err != nil {
		r.s.t.Fatal(err)
	}
	_, body := r.s.does(q)
	_, body, _ = strings.Cut(body, "\nagora_sidecar_peer_requests_total ")
	if _, err := fmt.Sscan(body, &n); err != nil {
		r.s.t.Fatal(err)
	}
	return n
}
