package aip

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora/wire/aip"
)

// pathKey is the metadata of every call that comes by a link: the ids of the gateways that it has come through, the first one first, with commas between them.
const pathKey = "agora-aip-path"

// maxHops is how many gateways a call may come through.
const maxHops = 4

// pathOf returns the gateways that a call has come through; nil for one that comes by no link.
func pathOf(ctx context.Context) []string {
	return splitPath(strings.Join(metadata.ValueFromIncomingContext(ctx, pathKey), ","))
}

func splitPath(s string) []string {
	if s == "" {
		return nil
	}
	all := strings.Split(s, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// passes returns FAILED_PRECONDITION for a call that has been here before, or has come too far. Nothing of it has been done then.
func (d *Door) passes(ctx context.Context) error {
	path := pathOf(ctx)
	if slices.Contains(path, d.cfg.GatewayID) {
		return status.Errorf(codes.FailedPrecondition, "the call has come through gateway %q before", d.cfg.GatewayID)
	}
	if len(path) > maxHops {
		return errTooFar
	}
	return nil
}

var errTooFar = status.Errorf(codes.FailedPrecondition, "the call has come through more than %d gateways", maxHops)

// over returns a context for a call by a link: it carries its path, which is that of the call which it goes on with, and this gateway.
func (d *Door) over(ctx context.Context, came []string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, pathKey, strings.Join(append(slices.Clip(came), d.cfg.GatewayID), ","))
}

// toward returns a context for a call of a target, from one for a call of a node. It fails where a link would lead back, or too far.
func (d *Door) toward(ctx context.Context, t *target) (context.Context, error) {
	if t.link == nil {
		return ctx, nil
	}
	came := pathOf(ctx)
	if len(came) >= maxHops {
		return nil, errTooFar
	}
	if t.link.leadsTo(came) {
		return nil, aip.NoReceiver()
	}
	return d.over(ctx, came), nil
}

// fieldThrough is the number of a field of Peer that gateways tell each other, and nobody else: the ids of the gateways through which the node is reached, the nearest first,
// with commas between them. To others it is an unknown field.
const fieldThrough = 100

// withThrough has a Peer say through which gateways it is reached.
func withThrough(p *aip.Peer, through []string) {
	m := p.ProtoReflect()
	b := protowire.AppendTag(slices.Clip(m.GetUnknown()), fieldThrough, protowire.BytesType)
	m.SetUnknown(protowire.AppendString(b, strings.Join(through, ",")))
}

// throughOf returns through which gateways a Peer is reached; nil where it does not say.
func throughOf(p *aip.Peer) (through []string) {
	for rest := []byte(p.ProtoReflect().GetUnknown()); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if size < 0 {
			return nil
		}
		if number == fieldThrough && kind == protowire.BytesType {
			text, _ := protowire.ConsumeString(rest[n:])
			through = splitPath(text)
		}
		rest = rest[n+size:]
	}
	return through
}
