package sidecar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	maxRelays   = 16 // at which a place is kept
	reserveTime = 10 * time.Second
	renewBefore = 2 // a reservation is renewed when so large a share of its time is over: a half
	leastRenew  = time.Second
	tellAfter   = 6 // attempts that fail are told to operators
)

// relays keeps a place at each relay that there is.
type relays struct {
	peer  *peerSide
	fixed bool // they were given, and none is learned
	work  sync.WaitGroup
	ctx   context.Context // ends when no place is kept any more; run sets it

	mu  sync.Mutex // guards the field below, and those of the relays
	all map[peer.ID]*relay
}

// relay is one at which a place is kept.
type relay struct {
	info     peer.AddrInfo
	stop     context.CancelFunc
	lost     chan struct{} // holds a token when the connection is gone
	reserved bool
}

// open notes the relays that were given; nil: they are learned.
func (r *relays) open(p *peerSide, given []string) error {
	r.peer, r.all, r.fixed = p, map[peer.ID]*relay{}, given != nil
	infos, err := relaysOf(given)
	if err != nil {
		return err
	}
	for _, info := range infos {
		r.all[info.ID] = &relay{info: info, lost: make(chan struct{}, 1)}
	}
	return nil
}

// relaysOf returns the peers that whole addresses are of.
func relaysOf(addresses []string) ([]peer.AddrInfo, error) {
	var all []ma.Multiaddr
	for _, text := range addresses {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("address of a relay: %w", err)
		}
		all = append(all, a)
	}
	return peer.AddrInfosFromP2pAddrs(all...)
}

// run keeps the places until ctx ends.
func (r *relays) run(ctx context.Context) {
	r.peer.host.Network().Notify(&network.NotifyBundle{DisconnectedF: func(n network.Network, c network.Conn) {
		if n.Connectedness(c.RemotePeer()) != network.Connected {
			r.disconnected(c.RemotePeer())
		}
	}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx = ctx
	for _, one := range r.all {
		r.begin(one)
	}
}

// begin keeps a place at one relay. It is called with the lock held.
func (r *relays) begin(one *relay) {
	ctx, stop := context.WithCancel(r.ctx)
	one.stop = stop
	r.work.Go(func() { r.keep(ctx, one) })
}

// learn has a place be kept at the relays that edges name, and at no others. What is known of those that stay is what
// is said now.
func (r *relays) learn(named []edgePeer) {
	if r.fixed {
		return
	}
	var addresses []string
	for _, e := range named {
		addresses = append(addresses, e.Addresses...)
	}
	infos := make([]peer.AddrInfo, 0, len(named))
	for _, a := range addresses { // one that can't be read is no reason to forget the others
		if some, err := relaysOf([]string{a}); err == nil {
			infos = append(infos, some...)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := map[peer.ID][]ma.Multiaddr{}
	for _, info := range infos {
		if _, known := now[info.ID]; known || len(now) < maxRelays {
			now[info.ID] = append(now[info.ID], info.Addrs...)
		}
	}
	for id, one := range r.all {
		if _, there := now[id]; !there {
			one.stop()
			delete(r.all, id)
		}
	}
	for id, at := range now {
		if one := r.all[id]; one != nil {
			one.info.Addrs = at
			continue
		}
		one := &relay{info: peer.AddrInfo{ID: id, Addrs: at}, lost: make(chan struct{}, 1)}
		r.all[id] = one
		r.begin(one)
	}
}

func (r *relays) disconnected(id peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.all[id]
	if one == nil {
		return
	}
	signal(one.lost) // also where the place was not noted yet
	if one.reserved {
		one.reserved = false
		signal(r.peer.moved)
	}
}

// keep reserves a place at a relay, renews it well before it is over, and reserves it again when it is lost, until ctx
// ends.
func (r *relays) keep(ctx context.Context, one *relay) {
	defer r.set(one, false)
	log, limit := r.peer.log, r.peer.limits
	for n := 1; ctx.Err() == nil; {
		wait, err := r.reserve(ctx, one)
		if err != nil {
			r.set(one, false)
			switch {
			case ctx.Err() != nil:
			case n == tellAfter:
				log.Warn("a relay gives the agent no place", "relay", one.info.ID.String(), "err", err)
			default:
				log.Debug("no place at a relay, tried again", "relay", one.info.ID.String(), "err", err)
			}
			pause.For(ctx, limit.after(n))
			n++
			continue
		}
		n = 1
		r.set(one, true)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-one.lost:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// reserve reserves a place, and returns how long to wait before it is renewed.
func (r *relays) reserve(ctx context.Context, one *relay) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, reserveTime)
	defer cancel()
	r.mu.Lock()
	info := peer.AddrInfo{ID: one.info.ID, Addrs: slices.Clone(one.info.Addrs)}
	r.mu.Unlock()
	select {
	case <-one.lost: // of a connection before
	default:
	}
	if err := r.peer.host.Connect(ctx, info); err != nil {
		return 0, err
	}
	place, err := circuit.Reserve(ctx, r.peer.host, info)
	if err != nil {
		return 0, err
	}
	left := time.Until(place.Expiration) / renewBefore
	return max(leastRenew, left-rand.N(left/8+1)), nil
}

// set notes whether there is a place, and has edges be told of a change.
func (r *relays) set(one *relay, reserved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.reserved != reserved {
		one.reserved = reserved
		signal(r.peer.moved)
	}
}

// wait returns when no place is kept any more. It goes behind the end of run's context.
func (r *relays) wait() { r.work.Wait() }

// count returns at how many relays there is a place.
func (r *relays) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.reserved {
			n++
		}
	}
	return n
}

// addresses returns where the peer is reached: its own addresses, and behind them those through relays at which it has
// a place.
func (p *peerSide) addresses() []string {
	all := p2phost.Whole(p.host)
	slices.Sort(all)
	p.relays.mu.Lock()
	defer p.relays.mu.Unlock()
	var circuits []string
	for _, one := range p.relays.all {
		if !one.reserved {
			continue
		}
		for _, a := range one.info.Addrs {
			circuits = append(circuits, fmt.Sprintf("%s/p2p/%s/p2p-circuit/p2p/%s", a, one.info.ID, p.host.ID()))
		}
	}
	slices.Sort(circuits)
	all = append(all[:min(len(all), agora.MaxAddresses/2)], circuits...)
	all = slices.DeleteFunc(all, func(a string) bool { return len(a) > agora.MaxAddress })
	return all[:min(len(all), agora.MaxAddresses)]
}
