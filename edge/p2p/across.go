package p2p

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// dialer reaches peers: over the connection that there is, through the edge at which they have reserved a place, or at
// addresses of theirs.
type dialer struct {
	*shared
	peers  *known
	relays *relays
}

// elsewhere returns the other edges at which a peer has reserved a place. Without one it asks presence once more: the
// reservation may be a moment old. UNAVAILABLE.
func (d *dialer) elsewhere(ctx context.Context, to peer.ID) ([]relay, error) {
	begun := time.Now()
	found, err := d.peers.find(ctx, to)
	if err != nil {
		return nil, err
	}
	if at := d.among(d.relays.list(ctx), found); len(at) > 0 {
		return at, nil
	}
	if found, err = d.peers.look(ctx, to); err != nil || len(found.At) == 0 {
		return nil, err
	}
	return d.among(d.relays.since(ctx, begun), found), nil
}

// among returns the other edges that live and have reserved a place for a peer.
func (d *dialer) among(edges map[presence.Holder]relay, found presence.Peer) (at []relay) {
	for _, h := range found.At {
		if e, lives := edges[h]; lives && e.ID != d.host.ID() {
			at = append(at, e)
		}
	}
	return at
}

// through makes a circuit from a peer to another one by the relay of another edge, and returns its stream.
func (d *dialer) through(ctx context.Context, src, to peer.ID) (network.Stream, pbv2.Status) {
	edges, err := d.elsewhere(ctx, to)
	if err != nil {
		return nil, pbv2.Status_CONNECTION_FAILED
	}
	status := pbv2.Status_NO_RESERVATION
	for _, e := range edges {
		out, s, err := d.ask(ctx, e, src, to)
		if err == nil && s == pbv2.Status_OK {
			return out, s
		}
		d.cfg.Log.Debug("another edge makes no circuit", "peer", to.String(), "edge", e.told.Holder.Edge, "status", s.String(), "err", err)
		if d.peers.forget(to); status != pbv2.Status_CONNECTION_FAILED {
			status = s
		}
	}
	return nil, status
}

// askTime is how long another edge may take to make a circuit.
const askTime = 10 * time.Second

// ask asks the relay of another edge for a circuit from a peer to another one.
func (d *dialer) ask(ctx context.Context, e relay, src, to peer.ID) (network.Stream, pbv2.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	failed := pbv2.Status_CONNECTION_FAILED
	if err := d.host.Connect(ctx, e.AddrInfo); err != nil {
		return nil, failed, err
	}
	s, err := d.host.NewStream(ctx, e.ID, proto.ProtoIDv2Hop)
	if err != nil {
		return nil, failed, err
	}
	until, _ := ctx.Deadline()
	_ = s.SetDeadline(until) // what is over fails to be written
	msg := &pbv2.HopMessage{Type: pbv2.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: to})}
	setSource(msg, src)
	err = util.NewDelimitedWriter(s).WriteMsg(msg)
	if err == nil {
		_, msg, err = readHop(s)
	}
	if err == nil && msg.GetType() != pbv2.HopMessage_STATUS {
		err = errors.New("the edge has answered with no status")
	}
	if err != nil {
		_ = s.Reset()
		return nil, failed, err
	}
	if msg.GetStatus() != pbv2.Status_OK {
		_ = s.Reset()
		return nil, msg.GetStatus(), nil
	}
	_ = s.SetDeadline(time.Time{})
	return s, pbv2.Status_OK, nil
}

// mayDial decides where the host dials peers: edges at what they announce, and everything else as the settings allow,
// the one who is said to be there. What goes through a relay is dialled there.
func (d *dialer) mayDial(p peer.ID, a ma.Multiaddr) bool {
	if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err == nil {
		return true
	}
	return d.checkDial(d.ctx, p, a) == nil
}

// checkDial returns nil where a peer may be dialled at an address, which goes through no relay. Errors are those of
// [dial.Dialer.Check].
func (d *dialer) checkDial(ctx context.Context, p peer.ID, a ma.Multiaddr) error {
	if d.relays.announces(p, a) {
		return nil
	}
	address, err := tcpAddress(a)
	if err != nil {
		return agora.Errorf(agora.InvalidRequest, "%v", err)
	}
	return d.node.Config().Dialer.Check(ctx, address)
}

// tcpAddress returns HOST:PORT of an address.
func tcpAddress(a ma.Multiaddr) (string, error) {
	_, address, err := manet.DialArgs(a)
	if err != nil {
		return "", fmt.Errorf("address %s: %w", a, err)
	}
	return address, nil
}
