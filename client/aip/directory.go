package aip

import (
	"maps"
	"slices"
	"sync"
	"time"

	wire "github.com/agora-relay/agora/wire/aip"
)

// directory is the nodes that a gateway lists: those that are registered with it, its members, and those that linked
// gateways offer. A member goes before what is offered under its id, and of that what has the shortest path.
type directory struct {
	gateway string // id

	mu        sync.Mutex // guards the fields below, and those of members and watchers
	members   map[string]*member
	reserved  map[string][]string // ids of those who are about to become members, and the names of what they reach
	addresses map[string]string   // names of what members and those reach, with their ids
	offers    map[string][]*offer // by id, the best one first
	watchers  map[*watcher]struct{}
}

// member is a node that is registered here.
type member struct {
	id string

	// guarded by the directory's lock
	peer    *Peer
	channel *channel
	names   []string    // of what its address reaches
	seen    time.Time   // when it gave its last sign of life
	silence *time.Timer // looks whether it has given one since
}

// listing is a node as it is listed: a member, or what a link offers.
type listing struct {
	peer   *Peer
	path   []string
	member *member
	link   *link
}

func newDirectory(gateway string) *directory {
	return &directory{
		gateway: gateway, members: map[string]*member{}, reserved: map[string][]string{}, addresses: map[string]string{},
		offers: map[string][]*offer{}, watchers: map[*watcher]struct{}{},
	}
}

// find returns the node of an id.
func (d *directory) find(id string) (listing, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listed(id)
}

// listed is find with the lock held.
func (d *directory) listed(id string) (listing, bool) {
	if m := d.members[id]; m != nil {
		return listing{peer: m.peer, member: m}, true
	}
	if all := d.offers[id]; len(all) > 0 {
		return listing{peer: all[0].peer, path: all[0].path, link: all[0].link}, true
	}
	return listing{}, false
}

// list returns the nodes that are told to who asks through gateways, none for a node, in order of their ids.
func (d *directory) list(through []string) []*Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := map[string]struct{}{}
	for id := range d.members {
		ids[id] = struct{}{}
	}
	for id := range d.offers {
		ids[id] = struct{}{}
	}
	var all []*Peer
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if p := d.told(id, through); p != nil {
			all = append(all, p)
		}
	}
	return all
}

// told returns what is told of a node to who asks through gateways: nothing where it is known through one of them. The
// lock is held.
func (d *directory) told(id string, through []string) *Peer {
	l, ok := d.listed(id)
	switch {
	case !ok:
		return nil
	case len(through) == 0:
		return l.peer
	case meets(l.path, through), slices.Contains(through, d.gateway), len(l.path) >= wire.MaxHops:
		return nil
	}
	return wire.WithThrough(l.peer, append([]string{d.gateway}, l.path...))
}

// rival is who has the id or the address of a node that is about to become a member.
type rival struct {
	member  *member // nil for one that is about to become one itself
	address string  // where it serves
	byID    bool    // it has the id
}

// reserve keeps an id and an address for a node that is about to become a member, unless a rival has one of them.
func (d *directory) reserve(p *Peer, names []string) *rival {
	id := wire.IDOf(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.members[id]; m != nil {
		return &rival{m, peerAddress(m.peer), true}
	}
	if _, there := d.reserved[id]; there {
		return &rival{byID: true}
	}
	for _, name := range names {
		if owner, there := d.addresses[name]; there {
			return &rival{d.members[owner], d.addressOf(owner), false}
		}
	}
	d.reserved[id] = names
	d.own(id, names)
	return nil
}

// addressOf returns where a member serves; empty for what is none yet. The lock is held.
func (d *directory) addressOf(id string) string {
	if m := d.members[id]; m != nil {
		return peerAddress(m.peer)
	}
	return ""
}

// own has a node have the names of what it reaches. The lock is held.
func (d *directory) own(id string, names []string) {
	for _, name := range names {
		d.addresses[name] = id
	}
}

// free has nobody have some names. The lock is held.
func (d *directory) free(names []string) {
	for _, name := range names {
		delete(d.addresses, name)
	}
}

// cancel takes back what was reserved.
func (d *directory) cancel(p *Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free(d.reserved[wire.IDOf(p)])
	delete(d.reserved, wire.IDOf(p))
}

// join makes a node a member for which reserve was called. expire is called when it has given no sign of life for so
// long.
func (d *directory) join(p *Peer, c *channel, timeout time.Duration, expire func(*member)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &member{id: wire.IDOf(p), peer: p, channel: c, names: d.reserved[wire.IDOf(p)], seen: time.Now()}
	m.silence = time.AfterFunc(timeout, func() { expire(m) })
	delete(d.reserved, m.id)
	d.members[m.id] = m
	d.changed(m.id)
}

// change replaces what is known of a member, which from now on is dialled by another channel unless that is nil. It
// returns the channel that is not used any more. names are those of what it reaches by that one. False where that is no
// member any more, or another one has one of the names: then nothing changes.
func (d *directory) change(m *member, p *Peer, c *channel, names []string) (old *channel, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := func(name string) bool { owner, there := d.addresses[name]; return there && owner != m.id }
	if d.members[m.id] != m || slices.ContainsFunc(names, taken) {
		return nil, false
	}
	m.peer = p
	if c != nil {
		d.free(m.names)
		d.own(m.id, names)
		old, m.channel, m.names = m.channel, c, names
	}
	d.changed(m.id)
	return old, true
}

// remove takes a member out, and returns its channel. False where that has been done.
func (d *directory) remove(m *member) (*channel, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.members[m.id] != m {
		return nil, false
	}
	delete(d.members, m.id)
	d.free(m.names)
	m.silence.Stop()
	d.keep(m.id, func(o *offer) bool { return o.sure }) // the others may be this very member, told by who has not heard yet
	d.changed(m.id)
	return m.channel, true
}

// clear takes out all members. Nobody is told.
func (d *directory) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		m.silence.Stop()
	}
	clear(d.members)
}

// alive notes a sign of life of a member. It returns false for what is none.
func (d *directory) alive(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.members[id]
	if m != nil {
		m.seen = time.Now()
	}
	return m != nil
}

// overdue reports whether a member has given no sign of life for so long. It looks again when that may be.
func (d *directory) overdue(m *member, timeout time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := timeout - time.Since(m.seen)
	if d.members[m.id] == m && left > 0 {
		m.silence.Reset(left)
	}
	return left <= 0
}
