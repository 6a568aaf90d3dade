package p2p

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// conns decides which connections of peers there are. One over which nobody has proven yet who it is is pending, as at
// every port of the edge. Then its peer is another edge; or a member: one that speaks as an agent, as it is bound to it
// or allowed; or a stranger. Strangers have few places, and the one that has been there longest makes room. A stranger
// is a member once a stream of it is let in.
type conns struct {
	*shared
	peers     *known
	relays    *relays
	strangers *admission.PendingConns
	silent    bool  // nobody is asked who they are: strangers are those over which nothing was asked
	queued    int64 // bytes that the edge may hold

	mu      sync.Mutex // guards the field below
	members map[*conn]struct{}
}

const (
	strangersPart   = 8 // part of p2p.connections that strangers may have besides
	mostStrangers   = 1024
	strangerStreams = 32 // that one of them may have open

	keptPart     = 4         // part of what the edge may hold up to which one connection has requests read
	heldPart     = 2         // and up to which it has streams unread
	worthClosing = 256 << 10 // bytes below which closing a connection frees nothing

	recheckEvery = 30 * time.Second // members are asked for again while there are many
	manyPart     = 4                // part of p2p.connections that is left then
)

// newConns returns what decides about the connections of a door.
func newConns(s *shared, peers *known, relays *relays) *conns {
	c := &conns{shared: s, peers: peers, relays: relays, silent: s.node.Unverified(s.ctx), members: map[*conn]struct{}{}}
	_, c.queued = s.node.Shedder().Limits()
	places := min(max(s.cfg.Connections/strangersPart, 1), mostStrangers)
	if c.silent {
		places = s.cfg.Connections
	}
	c.strangers = admission.NewPendingConns(nil, admission.PendingConnsConfig{Places: places, Shared: s.node.Config().Proxies.Trust})
	c.strangers.Limit(s.node.ConnLimiter(), nil)
	return c
}

// open opens a port at which peers connect.
func (c *conns) open(address string) (net.Listener, error) {
	l, err := c.cfg.Open(address)
	if err != nil {
		return nil, err
	}
	p := admission.NewPendingConns(l, admission.PendingConnsConfig{Shared: c.node.Config().Proxies.Trust})
	p.Limit(nil, c.node.Shedder().Strangers()) // who has proven who it is counts for its address
	return p, nil
}

// Admit implements p2phost.Admitter.
func (c *conns) Admit(s p2phost.Secured) (p2phost.Admission, error) {
	one := &conn{of: c, peer: s.Peer, secured: s.Conn}
	if s.Accepted == nil { // the edge has dialled it
		one.beOurs(dialled)
		return one, nil
	}
	one.pending, one.from = admission.PendingConnOf(s.Accepted), addressOf(s.Accepted)
	ctx, cancel := context.WithTimeout(c.ctx, answerTime)
	defer cancel()
	if c.relays.isEdge(ctx, s.Peer, false) {
		one.beOurs(anEdge)
		return one, nil
	}
	permit, err := c.node.ConnLimiter().Acquire(one.from)
	if err != nil {
		c.stats.Refused.Add(1)
		return nil, err
	}
	if !c.silent {
		if actor, _, err := c.peers.speaker(ctx, s.Peer); err == nil && one.beMember(permit, actor) == nil {
			return one, nil
		}
	}
	permit.Release() // strangers have an account of their own by address: members are not refused for them
	if err := one.beStranger(ctx); err != nil {
		c.stats.Refused.Add(1)
		return nil, err
	}
	return one, nil
}

// join takes one of the places that p2p.connections bounds.
func (c *conns) join(one *conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) >= c.cfg.Connections {
		return agora.Errorf(agora.Unavailable, "the edge has as many connections of libp2p as it may")
	}
	c.members[one] = struct{}{}
	return nil
}

// leave gives it back.
func (c *conns) leave(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, one)
}

// count counts bytes that are kept for all connections, and reports whether those are as many as the edge may hold.
func (c *conns) count(n int) (full bool) { return c.stats.Held.Add(int64(n)) > c.queued }

// full reports whether as many bytes are kept as the edge may hold.
func (c *conns) full() bool { return c.count(0) || c.node.Shedder().Full() != nil }

// heard notes what was found of who speaks over a connection: nothing where that is another one, as over a circuit.
func (c *conns) heard(ctx context.Context, over *conn, p peer.ID, a *edge.Actor, err error) {
	switch {
	case over == nil || over.peer != p:
	case err != nil:
		over.refused(ctx, err)
	case a == nil: // nobody is asked who they are
		a, _, _ = c.node.OfPeer(ctx, p.String(), presence.Peer{}, false) // so it is somebody
		fallthrough
	default:
		over.letIn(a)
	}
}

// recheck has members be strangers whose registration is over, while the places of members are short, until the door is
// closed.
func (c *conns) recheck() {
	for pause.For(c.ctx, recheckEvery) {
		if c.silent {
			return
		}
		for _, one := range c.many() {
			if _, _, err := c.peers.speaker(c.ctx, one.peer); err != nil {
				one.refused(c.ctx, err)
			}
		}
	}
}

// many returns the members; none unless there are many.
func (c *conns) many() (all []*conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) > c.cfg.Connections-c.cfg.Connections/manyPart {
		for one := range c.members {
			all = append(all, one)
		}
	}
	return all
}

// counted returns a connection as it is counted.
func counted(c network.Conn) *conn {
	one, is := p2phost.AdmissionOf(c).(*conn)
	if !is {
		return nil
	}
	return one
}

// addressOf returns where a connection comes from, by the word of a trusted proxy before the edge.
func addressOf(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}
