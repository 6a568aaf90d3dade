package aip

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// meets reports whether two paths have a gateway in common.
func meets(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
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
