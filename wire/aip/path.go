package aip

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// Gateways that are linked tell each other which gateways a call has come through, in its metadata, and through which a node is reached, in a field of its Peer
// that is unknown to all others. So nothing goes in circles, nor farther than MaxHops.

// MaxHops is how many gateways a call may come through.
const MaxHops = 4

// PathKey names the metadata of a call that comes by a link: the ids of the gateways that it has come through, the first one first, with commas between them.
const PathKey = "agora-aip-path"

// fieldThrough is the field of Peer by which gateways tell each other through which of them a node is reached: their ids, the nearest first, with commas between them.
const fieldThrough = 100

// PathOf returns the gateways that a call has come through, the first one first; nil for one that comes by no link.
func PathOf(ctx context.Context) []string {
	return splitPath(strings.Join(metadata.ValueFromIncomingContext(ctx, PathKey), ","))
}

// WithPath returns a context for a call that has come through some gateways.
func WithPath(ctx context.Context, path []string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, PathKey, strings.Join(path, ","))
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

// WithThrough returns a node that says through which gateways it is reached, the nearest first. The one given stays as it is, and shares what it holds.
func WithThrough(p *Peer, through []string) *Peer {
	b := append([]byte(nil), p.ProtoReflect().GetUnknown()...)
	b = protowire.AppendTag(b, fieldThrough, protowire.BytesType)
	told := &Peer{InfoType: p.GetInfoType()}
	told.ProtoReflect().SetUnknown(protowire.AppendString(b, strings.Join(through, ",")))
	return told
}

// Through returns through which gateways a node is reached, nil where it does not say, and the node without that. The one given stays as it is, and shares what it holds.
func Through(p *Peer) (plain *Peer, through []string) {
	var rest []byte
	unknown := p.ProtoReflect().GetUnknown()
	for f := (fields{rest: unknown}); ; {
		before := f.rest
		if !f.next() {
			break
		}
		if f.number == fieldThrough && f.kind == protowire.BytesType {
			through = splitPath(string(f.bytes))
			continue
		}
		rest = append(rest, before[:len(before)-len(f.rest)]...)
	}
	plain = &Peer{InfoType: p.GetInfoType()}
	plain.ProtoReflect().SetUnknown(rest)
	return plain, through
}
