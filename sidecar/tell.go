package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/p2p"
)

// The directory shows one card of an agent: that of its session, unless the session says nothing of itself; then that
// of its registration as a peer. So the session has the agent's card until edges have taken the peer and one of them
// keeps a place for it; from then on requests reach it by libp2p. Without places the session has the card again.

// registrar tells the cluster what the agent is: by its session, and by its registration as a peer.
type registrar struct {
	id     string
	limits *Limits
	log    *slog.Logger
	up     *upstream
	edges  *edges
	peer   *peerSide
	gate   *gate
	client *client.Client
	moved  chan struct{} // holds a token when edges are to be told of the peer

	list    *edgeList   // the edges that there are; nil before one has said so; watch's
	looked  time.Time   // when it did; watch's
	untold  string      // why edges were not told of the peer, last; watch's
	bound   atomic.Bool // an edge has taken the peer
	noPeers atomic.Bool // edges have no door for peers
	asPeer  atomic.Bool // the directory is to show the agent as a peer, and its session to say nothing of itself
}

// missedLooks is how many times no place is found before the session has the card again.
const missedLooks = 2

// watch learns which edges are relays and tells one of them of the peer, every now and then, and at once when what is
// to be told has changed, until ctx ends.
func (r *registrar) watch(ctx context.Context) {
	tick := time.NewTicker(r.limits.Look)
	defer tick.Stop()
	r.look(ctx)
	r.tellPeer(ctx) // where credentials count, edges keep places for peers that they know
	for missed := 0; ctx.Err() == nil; {
		if r.list != nil {
			r.peer.relays.learn(r.list.Edges)
		}
		for again := true; again; {
			if r.tellPeer(ctx) && r.peer.relays.count() > 0 {
				missed = 0
				r.show(true)
			} else if missed++; missed > missedLooks {
				r.show(false)
			}
			select {
			case <-ctx.Done():
				return
			case <-r.moved:
				missed = max(0, missed-1) // that was no look
			case <-tick.C:
				again = false
			}
		}
		r.look(ctx)
	}
}

// look asks which edges there are. Where none answers, those that are known stay.
func (r *registrar) look(ctx context.Context) {
	list, err := r.edges.list(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		r.log.Debug("no edge says which of them are peers", "err", err)
		return
	case list == nil:
		list = new(edgeList) // edges have no door for peers
	}
	r.list, r.looked = list, time.Now()
	r.gate.learn(list)
}

// show has the directory show the agent as a peer, or its session's card.
func (r *registrar) show(asPeer bool) {
	if r.asPeer.Swap(asPeer) != asPeer {
		signal(r.up.changed)
	}
}

// tellPeer tells an edge which peer the agent is, and where. It returns false where none takes it.
func (r *registrar) tellPeer(ctx context.Context) bool {
	begun := time.Now()
	said := r.registration()
	said.Proof = r.prove()
	answer, there, err := r.edges.register(ctx, said)
	if refused(err, http.StatusForbidden) { // edges may not dial every address; or the edge that the proof names is gone
		r.log.Debug("edges are told of relays alone", "err", err)
		r.look(ctx)
		said.Proof = r.prove()
		said.Addresses = slices.DeleteFunc(said.Addresses, func(a string) bool { return !strings.Contains(a, "/p2p-circuit") })
		answer, there, err = r.edges.register(ctx, said)
	}
	if there {
		r.bound.Store(true)
	}
	if there && answer.Bound != nil && !*answer.Bound {
		err = agora.Errorf(agora.Forbidden, "%s", answer.Why)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && err.Error() != r.untold:
		r.untold = err.Error()
		r.log.Warn("no edge takes the agent's peer id", "err", err)
	case !there && r.noPeers.CompareAndSwap(false, true):
		r.log.Info("edges have no door for peers: the agent is a member without a peer id")
	}
	if err == nil {
		r.untold = ""
	}
	if err == nil && there {
		r.gate.boundUntil(begun.Add(r.limits.Lasts))
	}
	return err == nil && there
}

// prove returns the proof that the peer is to speak as the agent, by the time of the cluster; nil where edges ask for
// none.
func (r *registrar) prove() *p2p.Proof {
	if r.list == nil || len(r.list.Edges) == 0 || r.list.Now == 0 {
		return nil // no edge has answered, or those are of an earlier version
	}
	now := r.list.Now + time.Since(r.looked).Milliseconds()
	return r.peer.prove(p2p.Binding{Tenant: r.list.Tenant, Agent: agora.AgentID(r.id), Edge: r.list.Edges[0].Peer, Peer: r.peer.id(), Time: now})
}

func (r *registrar) registration() registration {
	card, _ := r.up.now()
	a := r.described(&card)
	said := registration{
		Agent: r.id, Peer: r.peer.id(), Addresses: r.peer.addresses(), Description: a.Description, Version: a.Version, Capabilities: a.Capabilities, TTL: int(r.limits.Lasts.Seconds()),
	}
	for _, one := range a.Skills {
		said.Skills = append(said.Skills, skill{one.Name, one.Description, one.Schema})
	}
	return said
}

// withdraw takes the registration of the peer back, where it was taken.
func (r *registrar) withdraw() {
	if !r.bound.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), edgeTime)
	defer cancel()
	if err := r.edges.withdraw(ctx, r.id); err != nil {
		r.log.Debug("the registration of the peer ends by itself", "err", err)
	}
}

// tellCard has the session say what it is to say of itself, at each change until ctx ends.
func (r *registrar) tellCard(ctx context.Context) {
	for n := 0; ; {
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-r.up.changed:
			}
		} else if !pause.For(ctx, r.limits.after(n)) {
			return
		}
		signal(r.moved) // the registration has the card too
		err := r.client.UpdateCard(ctx, r.sessionCard())
		switch {
		case err == nil:
			n = 0
			r.log.Debug("the agent's card was told", "as_peer", r.asPeer.Load())
		case ctx.Err() != nil:
			return
		default:
			n++
			r.log.Warn("the agent's card was not taken", "err", err)
		}
	}
}

// sessionCard returns what the session says of itself.
func (r *registrar) sessionCard() client.Card {
	if r.asPeer.Load() {
		return client.Card{}
	}
	card, _ := r.up.now()
	a := r.described(&card)
	c := client.Card{Name: a.Name, Type: "http", Capabilities: a.Capabilities, Description: a.Description, Skills: a.Skills}
	if a.Version != "" {
		c.Metadata, _ = json.Marshal(map[string]string{"version": a.Version}) // of strings it never fails
	}
	return c
}

// maxRegistered bounds what is registered of a card with the schemas of its skills: edges take 256 KiB.
const maxRegistered = 192 << 10

// described returns what the directory learns of a card: without schemas where there would be too much of them.
func (r *registrar) described(card *p2p.Card) agora.Agent {
	a := card.Agent(agora.AgentID(r.id))
	a.Registration = agora.Registration{}
	for k := range a.Skills {
		if a.Size() <= maxRegistered {
			break
		}
		a.Skills[k].Schema = nil
	}
	return a
}

// refused reports whether err is a refusal of an edge with a status.
func refused(err error, status int) bool {
	e, ok := errors.AsType[*edgeError](err)
	return ok && e.status == status
}
