package p2p

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// relays is the edges of the cluster as libp2p reaches them.
type relays struct {
	*shared
	reserved *reservations

	mu   sync.Mutex // guards the fields below
	all  map[presence.Holder]relay
	at   time.Time  // when they were asked for
	look lock.Mutex // held while they are
}

// relay is another edge, or this one.
type relay struct {
	peer.AddrInfo
	told presence.Relay
}

// announce has the cluster know where this edge is reached, for as long as its lease would last, until the door is
// closed.
func (r *relays) announce() {
	lease := r.node.Config().Lease
	for pause.For(r.ctx, lease/5) {
		if err := r.put(r.ctx); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Debug("other edges were not told where this one is reached", "err", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if err := r.node.Config().Presence.Peers.DropRelay(ctx, r.node.Holder()); err != nil {
		r.cfg.Log.Debug("other edges were not told that this one is gone", "err", err)
	}
}

// put tells where this edge is reached. Where presence has lost that, it has lost the reservations too: they are told
// again.
func (r *relays) put(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	p := r.node.Config().Presence
	before, err := p.Peers.Relays(ctx)
	if err != nil {
		return err
	}
	self := r.self()
	if err := p.Peers.PutRelay(ctx, self, r.node.Config().Lease); err != nil {
		return err
	}
	lost := !slices.ContainsFunc(before, func(o presence.Relay) bool { return o.Holder == self.Holder })
	if lost {
		before = append(before, self)
		r.reserved.again()
	}
	r.take(before)
	return nil
}

// take notes who was listed.
func (r *relays) take(listed []presence.Relay) {
	all := make(map[presence.Holder]relay, len(listed))
	for _, l := range listed {
		id, err := peer.Decode(l.Peer)
		if err != nil {
			continue
		}
		one := relay{peer.AddrInfo{ID: id}, l}
		for _, text := range l.Addresses {
			if a, err := ma.NewMultiaddr(text); err == nil {
				if a, _ = peer.SplitAddr(a); a != nil {
					one.Addrs = append(one.Addrs, a)
				}
			}
		}
		all[l.Holder] = one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.at = all, time.Now()
}

// list returns the edges as they were listed up to a second ago, or when presence could last be reached.
func (r *relays) list(ctx context.Context) map[presence.Holder]relay {
	return r.since(ctx, time.Now().Add(-freshTime))
}

// since returns the edges as they were listed at some time or later.
func (r *relays) since(ctx context.Context, t time.Time) map[presence.Holder]relay {
	r.look.Lock()
	defer r.look.Unlock()
	r.mu.Lock()
	all, at := r.all, r.at
	r.mu.Unlock()
	if at.After(t) {
		return all
	}
	ask, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	listed, err := r.node.Config().Presence.Peers.Relays(ask)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at = time.Now() // it is asked again, but not by everybody
		return all
	}
	r.take(listed)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// has reports whether a peer is an edge of the cluster, as far as is known here.
func (r *relays) has(p peer.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.ID == p {
			return true
		}
	}
	return false
}

// announces reports whether an edge of the cluster says that it is reached at an address.
func (r *relays) announces(p peer.ID, a ma.Multiaddr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.ID == p && slices.ContainsFunc(one.Addrs, a.Equal) {
			return true
		}
	}
	return false
}

// isEdge is has that asks presence about a peer that is not known: at once where it says that it is one, as it may be
// new.
func (r *relays) isEdge(ctx context.Context, p peer.ID, says bool) bool {
	if r.has(p) {
		return true
	}
	if says {
		r.since(ctx, time.Now())
	} else {
		r.list(ctx)
	}
	return r.has(p)
}
