package p2p

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	reservedTime = 100 * time.Second // for so long presence keeps a reservation
	reservedBeat = 30 * time.Second  // and so often it is told again
	dropTime     = 3 * time.Second
)

// reservations is the peers that have reserved a place at this edge: the library keeps them as well, and says nothing
// of it.
type reservations struct {
	*shared
	peers *known
	lost  chan struct{} // holds a token where presence may have lost them

	mu    sync.Mutex            // guards the field below
	until map[peer.ID]time.Time // when each is over, unless it is renewed
}

func newReservations(s *shared, peers *known) *reservations {
	return &reservations{shared: s, peers: peers, until: map[peer.ID]time.Time{}, lost: make(chan struct{}, 1)}
}

// add notes a reservation that the library has taken, and tells the cluster.
func (r *reservations) add(p peer.ID, until time.Time) {
	r.mu.Lock()
	_, had := r.until[p]
	r.until[p] = until
	r.stats.Reservations.Store(int64(len(r.until)))
	r.mu.Unlock()
	r.peers.forget(p)
	ctx, cancel := context.WithTimeout(r.ctx, answerTime)
	defer cancel()
	if err := r.node.Config().Presence.Peers.PutReservations(ctx, r.node.Holder(), []string{p.String()}, reservedTime); err != nil {
		r.cfg.Log.Info("other edges do not know yet that a peer has reserved a place", "peer", p.String(), "err", err)
	} else if !had {
		r.cfg.Log.Debug("peer has reserved a place", "peer", p.String())
	}
}

// has reports whether a peer has a place here.
func (r *reservations) has(p peer.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until[p])
}

// disconnected ends the reservation of a peer that has no connection left.
func (r *reservations) disconnected(n network.Network, p peer.ID) {
	if n.Connectedness(p) == network.Connected {
		return
	}
	r.mu.Lock()
	_, had := r.until[p]
	delete(r.until, p)
	r.stats.Reservations.Store(int64(len(r.until)))
	r.mu.Unlock()
	if had { // where the door is closed, all go
		r.background(func() { r.drop([]peer.ID{p}) })
	}
}

// drop has the cluster know that peers have no place here any more.
func (r *reservations) drop(ps []peer.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	if err := r.node.Config().Presence.Peers.DropReservations(ctx, r.node.Holder(), texts(ps)); err != nil {
		r.cfg.Log.Debug("reservations that are over stand for a while", "peers", len(ps), "err", err)
	}
}

// again has all reservations be told at once.
func (r *reservations) again() {
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// keep tells the cluster of all reservations every now and then, until the door is closed.
func (r *reservations) keep() {
	t := time.NewTicker(reservedBeat)
	defer t.Stop()
	for {
		select {
		case <-r.ctx.Done():
			r.mu.Lock()
			left := slices.Collect(maps.Keys(r.until))
			r.mu.Unlock()
			r.drop(left)
			return
		case <-t.C:
		case <-r.lost:
		}
		all := r.live()
		ctx, cancel := context.WithTimeout(r.ctx, answerTime)
		if err := r.node.Config().Presence.Peers.PutReservations(ctx, r.node.Holder(), texts(all), reservedTime); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Debug("reservations were not told again", "peers", len(all), "err", err)
		}
		cancel()
	}
}

// live returns the peers whose reservation is not over, and forgets the others.
func (r *reservations) live() []peer.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.until, func(_ peer.ID, until time.Time) bool { return now.After(until) })
	r.stats.Reservations.Store(int64(len(r.until)))
	return slices.Collect(maps.Keys(r.until))
}

func texts(ps []peer.ID) []string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = p.String()
	}
	return all
}
