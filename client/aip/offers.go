package aip

import (
	"cmp"
	"maps"
	"slices"

	wire "github.com/agora-relay/agora/wire/aip"
)

// offer is a node that a linked gateway lists.
type offer struct {
	link *link
	peer *Peer    // as it is listed here
	path []string // gateways between the node and this one
	sure bool     // the path is the other gateway's word, not a guess
}

// offer notes nodes that a link has. Where whole is set they are all that it has.
func (d *directory) offer(l *link, whole bool, peers ...*Peer) {
	here := l.gateway.Address()
	d.mu.Lock()
	defer d.mu.Unlock()
	others := func(o *offer) bool { return o.link != l }
	has := map[string]bool{}
	for _, p := range peers {
		id, o := wire.IDOf(p), offered(l, p, here)
		has[id] = true
		if good := o.good(d.gateway); d.keep(id, others) || good {
			if good {
				d.add(id, o)
			}
			d.changed(id)
		}
	}
	for id := range maps.Clone(d.offers) {
		if whole && !has[id] && d.keep(id, others) {
			d.changed(id)
		}
	}
}

// offered returns a node of a link as it is listed at an address.
func offered(l *link, p *Peer, address string) *offer {
	plain, path := wire.Through(p)
	o := &offer{link: l, peer: peerAt(plain, address), path: path, sure: path != nil}
	if !o.sure {
		o.path = []string{l.address}
	}
	return o
}

// good reports whether a gateway may list an offer: it is not known through that gateway, nor from too far.
func (o *offer) good(gateway string) bool {
	return wire.IDOf(o.peer) != "" && !slices.Contains(o.path, gateway) && len(o.path) <= wire.MaxHops
}

// add adds an offer. The lock is held.
func (d *directory) add(id string, o *offer) {
	d.offers[id] = append(d.offers[id], o)
	slices.SortFunc(d.offers[id], func(a, b *offer) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.link.address, b.link.address))
	})
}

// withdraw notes that a link has a node no longer.
func (d *directory) withdraw(l *link, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keep(id, func(o *offer) bool { return o.link != l }) {
		d.changed(id)
	}
}

// keep keeps the offers of an id that a condition holds for, and reports whether there were others. The lock is held.
func (d *directory) keep(id string, holds func(*offer) bool) bool {
	old := d.offers[id]
	left := slices.DeleteFunc(slices.Clone(old), func(o *offer) bool { return !holds(o) })
	if d.offers[id] = left; len(left) == 0 {
		delete(d.offers, id)
	}
	return len(left) < len(old)
}
