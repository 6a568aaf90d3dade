package aip

import wire "github.com/agora-relay/agora/wire/aip"

// peerAddress returns where a node serves.
func peerAddress(p *Peer) string {
	if a := p.GetAgentInfo(); a != nil {
		return a.GetAddress()
	}
	return p.GetToolboxInfo().GetAddress()
}

// peerDomain returns the group of a node.
func peerDomain(p *Peer) string {
	if a := p.GetAgentInfo(); a != nil {
		return a.GetDomain()
	}
	return p.GetToolboxInfo().GetDomain()
}

// isToolbox tells a toolbox from an agent.
func isToolbox(p *Peer) bool { return p.GetToolboxInfo() != nil }

func agentPeer(a *AgentInfo) *Peer { return &Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: a}} }

func toolboxPeer(t *ToolBoxInfo) *Peer {
	return &Peer{InfoType: &wire.Peer_ToolboxInfo{ToolboxInfo: t}}
}
