package aip

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// origin is what the card of a node says in its Metadata that a link has brought here.
type origin struct {
	Gateway string   `json:"gateway"`       // address by which it is reached
	Since   int64    `json:"gateway_since"` // when the link to it was made, in µs
	Through []string `json:"through"`       // gateways through which it is reached, the nearest first
}

// originOf returns which link has brought the node of a card; nil for none.
func originOf(card *agora.Agent) *origin {
	if card.Dialect != aip.Dialect || !bytes.Contains(card.Metadata, []byte(`"gateway":`)) {
		return nil
	}
	o := new(origin)
	if json.Unmarshal(card.Metadata, o) != nil || o.Gateway == "" {
		return nil
	}
	return o
}

// leadsTo reports whether a node is reached through one of some gateways.
func (o *origin) leadsTo(gateways []string) bool {
	return slices.ContainsFunc(o.Through, func(id string) bool { return slices.Contains(gateways, id) })
}

// before reports whether a node was brought by another link than one, and an older one.
func (o *origin) before(l *presence.Link) bool {
	return o.Gateway != l.Address && o.Since < l.Since.UnixMicro()
}

// cardOf returns the card with which a link brings a node here that its gateway offers, and keeps what the node has
// registered with.
func cardOf(p *aip.Peer, l *presence.Link, through []string) (agora.Agent, error) {
	var info proto.Message
	media := aip.MediaAgent
	switch p.GetInfoType().(type) {
	case *aip.Peer_AgentInfo:
		info = p.GetAgentInfo()
	case *aip.Peer_ToolboxInfo:
		info, media = p.GetToolboxInfo(), aip.MediaToolbox
	default:
		return agora.Agent{}, errNoNode
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(info)
	if err != nil {
		return agora.Agent{}, err
	}
	card, err := aip.Card(agora.Registration{Media: media, Body: body})
	if err != nil {
		return card, err
	}
	about := map[string]json.RawMessage{}
	if err := json.Unmarshal(card.Metadata, &about); err != nil {
		return card, err
	}
	delete(about, "address") // at which only its gateway reaches it
	by, err := json.Marshal(origin{l.Address, l.Since.UnixMicro(), through})
	if err == nil {
		err = json.Unmarshal(by, &about)
	}
	if err == nil {
		card.Metadata, err = json.Marshal(about)
	}
	card.RegisteredAt = time.Time{}
	return card, err
}

var errNoNode = errors.New("it is neither an agent nor a toolbox")

// peerOf returns a card as the node that it is to a caller: one that another gateway has is reached at this edge, and
// so are agents of other dialects. It is nil for one that the caller has itself, or that is reached through it. path is
// through which gateways the caller asks; nil where it is none.
func (l *catalog) peerOf(card *agora.Agent, path []string) *aip.Peer {
	o := originOf(card)
	if o != nil && o.leadsTo(path) {
		return nil
	}
	p := aip.PeerOf(card, l.address())
	var through []string
	if o != nil {
		through = o.Through
		if a := p.GetAgentInfo(); a != nil {
			a.Address = l.address()
		}
		if b := p.GetToolboxInfo(); b != nil {
			b.Address = l.address()
		}
	}
	if path != nil {
		p = aip.WithThrough(p, append([]string{l.cfg.GatewayID}, through...))
	}
	return p
}
