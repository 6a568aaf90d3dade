package aip

import (
	"cmp"
	"encoding/json"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

// DefaultDomain is the domain of an agent that has named none. In GetNodes it stands for all domains, as does none.
const DefaultDomain = "default"

// InDomain reports whether a card is among the nodes of a domain, as GetNodes has it.
func InDomain(card *agora.Agent, domain string) bool {
	return domain == "" || domain == DefaultDomain || domainOf(card) == domain
}

func domainOf(card *agora.Agent) string { return cmp.Or(card.Domain, DefaultDomain) }

// PeerOf returns a card as a node. Of a node it is what that has registered, unknown fields included, where the card
// has its Registration, and what the card says of it otherwise. An agent of another dialect is an AgentInfo at the
// given address, whose skills are its skills and tools.
func PeerOf(card *agora.Agent, address string) *Peer {
	if card.Dialect == Dialect {
		if p := registered(&card.Registration); p != nil {
			return p
		}
		return listedNode(card)
	}
	return &Peer{InfoType: &Peer_AgentInfo{AgentInfo: agentOf(card, address)}}
}

// listedNode returns what the card of a node says of it.
func listedNode(card *agora.Agent) *Peer {
	var a about
	_ = json.Unmarshal(card.Metadata, &a) // one that says nothing is at no address
	if card.Type == TypeToolbox {
		return &Peer{InfoType: &Peer_ToolboxInfo{ToolboxInfo: toolboxOf(card, a.Address)}}
	}
	info := agentOf(card, a.Address)
	info.InputMode, info.OutputMode = modesOf(a.InputModes), modesOf(a.OutputModes)
	return &Peer{InfoType: &Peer_AgentInfo{AgentInfo: info}}
}

// registered returns what a node has registered; nil where that is not there.
func registered(r *agora.Registration) *Peer {
	switch r.Media {
	case MediaAgent:
		info := new(AgentInfo)
		if proto.Unmarshal(r.Body, info) == nil {
			return &Peer{InfoType: &Peer_AgentInfo{AgentInfo: info}}
		}
	case MediaToolbox:
		info := new(ToolBoxInfo)
		if proto.Unmarshal(r.Body, info) == nil {
			return &Peer{InfoType: &Peer_ToolboxInfo{ToolboxInfo: info}}
		}
	}
	return nil
}

// agentOf returns what a card says as an AgentInfo.
func agentOf(card *agora.Agent, address string) *AgentInfo {
	info := &AgentInfo{
		AgentId: string(card.ID), Address: address, Name: cmp.Or(card.Name, string(card.ID)), Domain: domainOf(card), Description: card.Description, Version: card.Version,
		InputMode: []Mode{Mode_TEXT}, OutputMode: []Mode{Mode_TEXT},
	}
	names := make(map[string]struct{}, len(card.Skills)+len(card.Tools))
	for _, skills := range [...][]agora.Skill{card.Skills, card.Tools} {
		for _, s := range skills {
			if _, twice := names[s.Name]; twice {
				continue
			}
			names[s.Name] = struct{}{}
			info.Skills = append(info.Skills, &AgentInfo_AgentSkill{SkillId: s.Name, Capability: s.Description})
		}
	}
	return info
}

// toolboxOf returns what a card says as a ToolBoxInfo.
func toolboxOf(card *agora.Agent, address string) *ToolBoxInfo {
	info := &ToolBoxInfo{ToolboxId: string(card.ID), Address: address, Name: card.Name, Domain: domainOf(card), Description: card.Description}
	for _, s := range card.Tools {
		info.Tools = append(info.Tools, &ToolInfo{Name: s.Name, Description: s.Description, Arguments: string(s.Schema)})
	}
	return info
}

// What stands in a RegisterAgentResponse.
const (
	fieldSuccess = 1
	fieldPeers   = 2
)

// ListedPeer returns a node as it stands among the peers of a RegisterAgentResponse, encoded.
func ListedPeer(p *Peer) ([]byte, error) {
	b, err := proto.Marshal(p)
	if err != nil {
		return nil, err
	}
	return appendField(nil, fieldPeers, b), nil
}

// ListedNode is [ListedPeer] for the very bytes with which a node has registered.
func ListedNode(r *agora.Registration) []byte {
	number := protowire.Number(1)
	if r.Media == MediaToolbox {
		number = 2
	}
	size := protowire.SizeTag(number) + protowire.SizeBytes(len(r.Body))
	b := make([]byte, 0, protowire.SizeTag(fieldPeers)+protowire.SizeBytes(size))
	b = protowire.AppendVarint(protowire.AppendTag(b, fieldPeers, protowire.BytesType), uint64(size))
	return appendField(b, number, r.Body)
}

// RegisterAnswer returns a RegisterAgentResponse that says success, of peers as [ListedPeer] and [ListedNode] encode
// them. It is written into buffers that are used again, as each that registers learns of all.
func RegisterAnswer(peers [][]byte) *Frame {
	w := answerWriter{pool: mem.DefaultBufferPool()}
	w.write([]byte{fieldSuccess<<3 | byte(protowire.VarintType), 1})
	for _, p := range peers {
		w.write(p)
	}
	w.flush()
	return &Frame{w.data}
}

// answerPiece is how large the buffers of an answer are: such as the pool has.
const answerPiece = 32 << 10

// answerWriter writes a message into buffers of a pool.
type answerWriter struct {
	pool mem.BufferPool
	data mem.BufferSlice
	last *[]byte // what is not in data yet; nil for nothing
}

func (w *answerWriter) write(b []byte) {
	for len(b) > 0 {
		if w.last == nil {
			w.last = w.pool.Get(answerPiece)
			*w.last = (*w.last)[:0]
		}
		n := min(len(b), answerPiece-len(*w.last))
		*w.last = append(*w.last, b[:n]...)
		if b = b[n:]; len(*w.last) == answerPiece {
			w.flush()
		}
	}
}

func (w *answerWriter) flush() {
	if w.last != nil {
		w.data, w.last = append(w.data, mem.NewBuffer(w.last, w.pool)), nil
	}
}

// fieldNodeInfo is UpdateNodeInfoRequest.node_info.
const fieldNodeInfo = 1

// ReadPeer returns what an encoded Peer says of a node, in its own bytes; no media type where it says nothing.
// INVALID_REQUEST where the bytes are malformed.
func ReadPeer(raw []byte) (agora.Registration, error) {
	var r agora.Registration
	f := fields{rest: raw}
	for f.next() {
		media := ""
		switch f.number {
		case 1:
			media = MediaAgent
		case 2:
			media = MediaToolbox
		}
		if media == "" || f.kind != protowire.BytesType {
			continue
		}
		if media != r.Media {
			r = agora.Registration{Media: media}
		}
		r.Body = joined(r.Body, f.bytes)
	}
	return r, malformed("Peer", f.err)
}

// ReadUpdate returns what an encoded UpdateNodeInfoRequest says of a node, as [ReadPeer] does.
func ReadUpdate(raw []byte) (agora.Registration, error) {
	var peer []byte
	f := fields{rest: raw}
	for f.next() {
		if f.number == fieldNodeInfo && f.kind == protowire.BytesType {
			peer = joined(peer, f.bytes)
		}
	}
	if f.err != nil {
		return agora.Registration{}, malformed("UpdateNodeInfoRequest", f.err)
	}
	return ReadPeer(peer)
}

// joined returns an encoded message that stands in several pieces, as protobuf merges them: by putting one behind the
// other.
func joined(before, more []byte) []byte {
	if len(before) == 0 {
		return more
	}
	return append(before[:len(before):len(before)], more...)
}
