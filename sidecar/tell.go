package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/p2p"
)

// The directory shows one card of an agent: that of its session, unless the session says nothing of itself; then that of its registration as a peer. So the session has the agent's card
// until edges have taken the peer and one of them keeps a place for it; from then on requests reach it by libp2p. Without places the session has the card again.

// missedLooks is how many times no place is found before the session has the card again.
const missedLooks = 2

// watchEdges learns which edges are relays and tells one of them of the peer, every now and then, and at once when what is to be told has changed, until ctx ends.
func (s *Sidecar) watchEdges(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Limits.Look)
	defer tick.Stop()
	s.tellPeer(ctx) // where credentials count, edges keep places for peers that they know
	for missed := 0; ; {
		named, err := s.edges.peers(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.cfg.Log.Debug("no edge says which of them are peers", "err", err)
		default:
			s.peer.relays.learn(named)
		}
		for again := true; again; {
			if s.tellPeer(ctx) && s.peer.relays.count() > 0 {
				missed = 0
				s.show(true)
			} else if missed++; missed > missedLooks {
				s.show(false)
			}
			select {
			case <-ctx.Done():
				return
			case <-s.moved:
				missed = max(0, missed-1) // that was no look
			case <-tick.C:
				again = false
			}
		}
	}
}

// show has the directory show the agent as a peer, or its session's card.
func (s *Sidecar) show(asPeer bool) {
	if s.asPeer.Swap(asPeer) != asPeer {
		signal(s.changed)
	}
}

// tellPeer tells an edge which peer the agent is, and where. It returns false where none takes it.
func (s *Sidecar) tellPeer(ctx context.Context) bool {
	r := s.registration()
	there, err := s.edges.register(ctx, r)
	if refused(err, http.StatusForbidden) { // edges may not dial every address
		s.cfg.Log.Debug("edges are told of relays alone", "agent", s.id, "err", err)
		r.Addresses = slices.DeleteFunc(r.Addresses, func(a string) bool { return !strings.Contains(a, "/p2p-circuit") })
		there, err = s.edges.register(ctx, r)
	}
	if there {
		s.bound.Store(true)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && err.Error() != s.untold:
		s.untold = err.Error()
		s.cfg.Log.Warn("no edge takes the agent's peer id", "agent", s.id, "err", err)
	case !there && s.noPeers.CompareAndSwap(false, true):
		s.cfg.Log.Info("edges have no door for peers: the agent is a member without a peer id", "agent", s.id)
	}
	if err == nil {
		s.untold = ""
	}
	return err == nil && there
}

func (s *Sidecar) registration() registration {
	card, _ := s.shown.now()
	a := s.described(&card)
	r := registration{
		Agent: s.id, Peer: s.peer.id(), Addresses: s.peer.addresses(), Description: a.Description, Version: a.Version, Capabilities: a.Capabilities, TTL: int(s.cfg.Limits.Lasts.Seconds()),
	}
	for _, one := range a.Skills {
		r.Skills = append(r.Skills, skill{one.Name, one.Description, one.Schema})
	}
	return r
}

// withdraw takes the registration of the peer back, where it was taken.
func (s *Sidecar) withdraw() {
	if !s.bound.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), edgeTime)
	defer cancel()
	if err := s.edges.withdraw(ctx, s.id); err != nil {
		s.cfg.Log.Debug("the registration of the peer ends by itself", "err", err)
	}
}

// tellCard has the session say what it is to say of itself, at each change until ctx ends.
func (s *Sidecar) tellCard(ctx context.Context) {
	for n := 0; ; {
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.changed:
			}
		} else if !pause.For(ctx, s.cfg.Limits.after(n)) {
			return
		}
		signal(s.moved) // the registration has the card too
		err := s.client.UpdateCard(ctx, s.sessionCard())
		switch {
		case err == nil:
			n = 0
			s.cfg.Log.Debug("the agent's card was told", "agent", s.id, "as_peer", s.asPeer.Load())
		case ctx.Err() != nil:
			return
		default:
			n++
			s.cfg.Log.Warn("the agent's card was not taken", "agent", s.id, "err", err)
		}
	}
}

// sessionCard returns what the session says of itself.
func (s *Sidecar) sessionCard() client.Card {
	if s.asPeer.Load() {
		return client.Card{}
	}
	card, _ := s.shown.now()
	a := s.described(&card)
	c := client.Card{Name: a.Name, Type: "http", Capabilities: a.Capabilities, Description: a.Description, Skills: a.Skills}
	if a.Version != "" {
		c.Metadata, _ = json.Marshal(map[string]string{"version": a.Version}) // of strings it never fails
	}
	return c
}

// maxRegistered bounds what is registered of a card with the schemas of its skills: edges take 256 KiB.
const maxRegistered = 192 << 10

// described returns what the directory is told of a card: without schemas where there would be too much of them.
func (s *Sidecar) described(card *p2p.Card) agora.Agent {
	a := card.Agent(agora.AgentID(s.id))
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
