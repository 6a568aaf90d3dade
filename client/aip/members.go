package aip

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// register makes a node a member: it dials its address, and lists it when it is there.
func (g *Gateway) register(ctx context.Context, p *Peer) error {
	if err := checkPeer(p); err != nil {
		return err
	}
	names := g.names(ctx, p)
	if err := g.reserve(ctx, p, names); err != nil {
		return err
	}
	c, err := g.dial(ctx, p)
	if err != nil {
		g.directory.cancel(p)
		return err
	}
	if ctx.Err() != nil { // who does not learn that it is registered is not
		g.directory.cancel(p)
		g.drop(c)
		return status.FromContextError(ctx.Err()).Err()
	}
	g.directory.join(p, c, g.cfg.HeartbeatTimeout, g.expire)
	return nil
}

// checkPeer returns what is wrong with what a node registers with.
func checkPeer(p *Peer) error {
	if _, err := agora.ParseOwnID(wire.IDOf(p)); err != nil {
		return status.Error(codes.InvalidArgument, agora.AsError(err).Message)
	}
	if err := checkAddress(peerAddress(p)); err != nil {
		return status.Error(codes.InvalidArgument, agora.AsError(err).Message)
	}
	return nil
}

// reserve keeps id and address for a node. Anyone who has one of them keeps it, unless it is found to be gone.
func (g *Gateway) reserve(ctx context.Context, p *Peer, names []string) error {
	for {
		r := g.directory.reserve(p, names)
		if r == nil {
			return nil
		}
		if r.member != nil && !g.answers(ctx, r.address) {
			g.deregister(r.member)
			continue
		}
		if r.byID {
			return idTaken(p)
		}
		return addressTaken(p)
	}
}

func idTaken(p *Peer) error {
	if isToolbox(p) {
		return wire.Status(wire.ToolboxExists(wire.IDOf(p))).Err()
	}
	return wire.Status(wire.AgentExists(wire.IDOf(p))).Err()
}

func addressTaken(p *Peer) error { return wire.Status(wire.AddressExists(peerAddress(p))).Err() }

// dial returns a channel to a node that is there, which is kept.
func (g *Gateway) dial(ctx context.Context, p *Peer) (*channel, error) {
	c, err := g.pool.fresh(peerAddress(p))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.DialTimeout)
	defer cancel()
	if err := reach(ctx, c.ClientConn); err != nil {
		g.drop(c)
		return nil, err
	}
	return c, nil
}

// names returns the names of what the address of a node reaches.
func (g *Gateway) names(ctx context.Context, p *Peer) []string {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.DialTimeout)
	defer cancel()
	return namesOf(ctx, peerAddress(p))
}

// answers reports whether something answers at an address, by a connection made for that.
func (g *Gateway) answers(ctx context.Context, address string) bool {
	conn, err := g.pool.dial(address)
	if err != nil {
		return false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.ProbeTimeout)
	defer cancel()
	switch status.Code(conn.Invoke(ctx, "/grpc.health.v1.Health/Check", new(wire.Frame), new(wire.Frame), grpc.ForceCodecV2(wire.Codec{}))) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return false
	}
	return true // also who knows no such method
}

// expire deregisters a member that has given no sign of life.
func (g *Gateway) expire(m *member) {
	if g.directory.overdue(m, g.cfg.HeartbeatTimeout) && g.deregister(m) {
		g.cfg.Log.Info("a node has given no sign of life", "agent", m.id)
	}
}

// deregister takes a member out. Calls that are under way go on. It returns false where that has been done.
func (g *Gateway) deregister(m *member) bool {
	c, ok := g.directory.remove(m)
	if ok {
		g.drop(c)
	}
	return ok
}

// drop gives back a channel that is not to be used any more.
func (g *Gateway) drop(c *channel) {
	g.pool.retire(c)
	g.pool.release(c)
}

// updateNodeInfo answers UpdateNodeInfo: a member says again what it is, and where.
func (g *Gateway) updateNodeInfo(ctx context.Context, in *wire.UpdateNodeInfoRequest) (*wire.UpdateNodeInfoResponse, error) {
	p := in.GetNodeInfo()
	if err := checkPeer(p); err != nil {
		return nil, err
	}
	l, _ := g.directory.find(wire.IDOf(p))
	if l.member == nil || isToolbox(l.peer) != isToolbox(p) {
		return &wire.UpdateNodeInfoResponse{Message: wire.UnknownNode(wire.IDOf(p))}, nil
	}
	var c *channel
	var names []string
	if peerAddress(p) != peerAddress(l.peer) {
		var err error
		if c, err = g.dial(ctx, p); err != nil {
			return nil, err
		}
		names = g.names(ctx, p)
	}
	old, ok := g.directory.change(l.member, p, c, names)
	if !ok && c != nil {
		g.pool.release(c)
		return nil, addressTaken(p)
	}
	if !ok {
		return &wire.UpdateNodeInfoResponse{Message: wire.UnknownNode(wire.IDOf(p))}, nil
	}
	if old != nil {
		g.drop(old)
	}
	return &wire.UpdateNodeInfoResponse{Success: true, Message: "Node updated"}, nil
}
