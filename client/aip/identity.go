package aip

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora/internal/endpoint"
	wire "github.com/agora-relay/agora/wire/aip"
)

// identity is who serves here: it proves what it says where it registers itself.
func (n *node) identity() wire.Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	who := wire.Identity{ID: n.cfg.ID}
	if n.registers {
		who.Secret = n.secret
	}
	return who
}

// registration returns a context for a registration of the node by itself: from now on there is no other.
func (n *node) registration(ctx context.Context) context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registers = true
	return wire.WithSecret(ctx, n.secret)
}

// meant returns NOT_FOUND for a call that is for another node: the one who registers the address of this one under
// another id reaches nothing here.
func (n *node) meant(ctx context.Context, method string) error {
	if method != wire.IdentifyMethod && !wire.Meant(ctx, n.cfg.ID) {
		return errNoReceiver
	}
	return nil
}

// unary refuses calls that are for another node.
func (n *node) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := n.meant(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handle(ctx, in)
}

// stream is unary for streams.
func (n *node) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := n.meant(s.Context(), info.FullMethod); err != nil {
		return err
	}
	return handle(srv, s)
}

// is reports whether a message that names its receiver names this node. An edge passes none that names nobody; who has
// dialled the node itself may.
func (n *node) is(receiver string) bool { return receiver == "" || receiver == n.cfg.ID }

// namesOf returns the names of what an address reaches, one of which is how it is written: two with a name in common
// are one node's. What can't be resolved has that name alone, and is not reached either.
func namesOf(ctx context.Context, address string) []string {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return []string{address}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return []string{address}
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	names := []string{host + ":" + strconv.FormatUint(port, 10)}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		ip, bad := netip.ParseAddr(host)
		if bad != nil {
			return names
		}
		all = []netip.Addr{ip}
	}
	names = append(names, endpoint.This().Names(all, uint16(port))...)
	slices.Sort(names)
	return slices.Compact(names)
}
