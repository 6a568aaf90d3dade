package aip

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	wire "github.com/agora-relay/agora/wire/aip"
)

// Register registers the node with a gateway, one of those given, else of Config.Gateways, and keeps it registered from
// now on: it gives signs of life, and registers again where a gateway has lost it or is gone. It returns when it is
// registered. A gateway has Config.RegisterTimeout for it. Errors: the status of the gateway that was asked last,
// INVALID_REQUEST for a node that was not started, [ErrClosed].
func (n *node) Register(ctx context.Context, gateways ...string) error {
	if n.Address() == "" {
		return errNotStarted
	}
	if len(gateways) > 0 {
		all, err := addresses(gateways)
		if err != nil {
			return err
		}
		n.gateways.use(all)
	}
	ctx, cancel := n.within(ctx)
	defer cancel()
	if err := n.tell(ctx, n.registerAt); err != nil {
		return n.why(err)
	}
	n.keeper.start(n.life, n.keep)
	return nil
}

// Deregister ends the registration. It returns when the gateway has said so.
func (n *node) Deregister(ctx context.Context) error {
	n.keeper.stop()
	ctx, cancel := n.within(ctx)
	defer cancel()
	n.registering.Lock()
	defer n.registering.Unlock()
	return n.why(n.deregister(ctx, func(ctx context.Context, c wire.GatewayServiceClient) bool { return true }))
}

// deregister deregisters the node with a gateway if a condition holds. The lock is held.
func (n *node) deregister(ctx context.Context, holds func(context.Context, wire.GatewayServiceClient) bool) error {
	_, err := n.gateways.do(ctx, func(ctx context.Context, c wire.GatewayServiceClient) error {
		if !holds(ctx, c) {
			return nil
		}
		_, err := c.DeregisterNode(ctx, &wire.DeregisterNodeRequest{NodeId: n.cfg.ID})
		return err
	})
	n.registered, n.unsure, n.told = false, false, Status{}
	return err
}

// leave deregisters a node that is closed, if it can be done in time. One that does not know whether it is registered
// looks first: another node may have its id.
func (n *node) leave() {
	n.registering.Lock()
	defer n.registering.Unlock()
	if !n.registered && !n.unsure {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.RegisterTimeout)
	defer cancel()
	sure := n.registered
	err := n.deregister(ctx, func(ctx context.Context, c wire.GatewayServiceClient) bool { return sure || n.isThere(ctx, c) })
	if err != nil {
		n.cfg.Log.Warn("the node is not deregistered", "agent", n.cfg.ID, "err", err)
	}
}

// UpdateInfo tells the gateway again what the node is, after that has changed. A gateway that has lost the node
// registers it.
func (n *node) UpdateInfo(ctx context.Context) error {
	if n.Address() == "" {
		return errNotStarted
	}
	ctx, cancel := n.within(ctx)
	defer cancel()
	return n.why(n.tell(ctx, func(ctx context.Context, c wire.GatewayServiceClient) error {
		resp, err := c.UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: n.info(n.Address())})
		if err != nil || resp.GetSuccess() {
			return err
		}
		return n.registerAt(ctx, c)
	}))
}

// tell tells a gateway of the node, and others how that stands.
func (n *node) tell(ctx context.Context, at func(context.Context, wire.GatewayServiceClient) error) error {
	n.registering.Lock()
	defer n.registering.Unlock()
	address, err := n.gateways.do(n.registration(ctx), at)
	switch status.Code(err) {
	case codes.OK:
		n.registered = true
	case codes.AlreadyExists:
		n.registered = false // another node is
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		n.unsure = true
	}
	s, old := Status{Node: n.cfg.ID, Address: n.Address(), Gateway: address, Err: err}, n.told
	if ctx.Err() != nil || old.Gateway == s.Gateway && (old.Err == nil) == (s.Err == nil) {
		return err
	}
	n.told = s
	n.cfg.Log.Info("how the registration of the node stands", "agent", n.cfg.ID, "gateway", address, "err", err)
	n.cfg.OnStatus(s)
	return err
}

// registerAt registers with one gateway. Where the node is registered there already, that stands; it is told what the
// node is now.
func (n *node) registerAt(ctx context.Context, c wire.GatewayServiceClient) (err error) {
	var success bool
	switch info := n.info(n.Address()).GetInfoType().(type) {
	case *wire.Peer_AgentInfo:
		success, err = n.registerAgent(ctx, c, info.AgentInfo)
	case *wire.Peer_ToolboxInfo:
		var resp *wire.RegisterToolResponse
		resp, err = c.RegisterTool(ctx, info.ToolboxInfo)
		success = resp.GetSuccess()
	}
	if status.Code(err) == codes.AlreadyExists && n.isThere(ctx, c) {
		_, err = c.UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: n.info(n.Address())})
		return err
	}
	if err == nil && !success {
		return status.Errorf(codes.FailedPrecondition, "the gateway does not register %s", n.cfg.ID)
	}
	return err
}

// registerAgent registers an agent with one gateway, and learns which nodes there are: those that it was told of, or
// where these are not all of them, or not whole, those that it asks for then.
func (n *node) registerAgent(ctx context.Context, c wire.GatewayServiceClient, info *AgentInfo) (success bool, err error) {
	var header metadata.MD
	resp, err := c.RegisterAgent(ctx, info, grpc.Header(&header))
	if err != nil || !resp.GetSuccess() {
		return false, err
	}
	peers := resp.GetPeers()
	if wire.LeftOut(header) != nil {
		if all, err := n.list(ctx, c, ""); err == nil { // else it knows what it was told
			peers = all
		}
	}
	n.learn(peers)
	return true, nil
}

// isThere reports whether a gateway lists this very node: its id at its address.
func (n *node) isThere(ctx context.Context, c wire.GatewayServiceClient) bool {
	peers, err := n.list(ctx, c, "")
	if err != nil {
		return false
	}
	for _, p := range peers {
		if wire.IDOf(p) == n.cfg.ID {
			return peerAddress(p) == n.Address()
		}
	}
	return false
}
