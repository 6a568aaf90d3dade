package aip

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Gateways that are linked tell each other which gateways a call has come through, in its metadata, and which ones a node is known through, in a field of its peer that
// others do not know. So nothing goes in circles, nor farther than [maxHops].
const (
	pathKey                    = "agora-aip-path" // ids of gateways, with commas, the first one first
	pathField protowire.Number = 100              // of Peer: the same, for the gateways between the node and who is told of it, the nearest first
	maxHops                    = 4                // from one gateway to another
)

// pathOf returns the gateways that a call has come through; none for one that a node makes.
func pathOf(ctx context.Context) (path []string) {
	for _, list := range metadata.ValueFromIncomingContext(ctx, pathKey) {
		path = append(path, strings.Split(list, ",")...)
	}
	return path
}

// withPath returns ctx for a call that has come through gateways.
func withPath(ctx context.Context, path []string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, pathKey, strings.Join(path, ","))
}

// meets reports whether two paths have a gateway in common.
func meets(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// peerWithPath returns a peer that says through which gateways it is known. The peer given stays as it is.
func peerWithPath(p *Peer, path []string) *Peer {
	told := &Peer{InfoType: p.InfoType}
	b := append([]byte(nil), p.ProtoReflect().GetUnknown()...)
	b = protowire.AppendTag(b, pathField, protowire.BytesType)
	told.ProtoReflect().SetUnknown(protowire.AppendString(b, strings.Join(path, ",")))
	return told
}

// peerPath returns a peer without its path, and the path; nil where it says none.
func peerPath(p *Peer) (*Peer, []string) {
	var rest []byte
	var path []string
	unknown := p.ProtoReflect().GetUnknown()
	eachField(unknown, func(number protowire.Number, kind protowire.Type, value []byte) error { // protobuf has read it: there is no error
		if number == pathField && kind == protowire.BytesType {
			s, _ := protowire.ConsumeString(value)
			path = strings.Split(s, ",")
			return nil
		}
		rest = append(protowire.AppendTag(rest, number, kind), value...)
		return nil
	})
	plain := &Peer{InfoType: p.InfoType}
	plain.ProtoReflect().SetUnknown(rest)
	return plain, path
}

// peerAt returns a peer that is listed with another address. The peer given stays as it is.
func peerAt(p *Peer, address string) *Peer {
	p = proto.Clone(p).(*Peer)
	if a := p.GetAgentInfo(); a != nil {
		a.Address = address
	} else if t := p.GetToolboxInfo(); t != nil {
		t.Address = address
	}
	return p
}
