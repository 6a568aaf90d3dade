package config

import (
	"log/slog"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
)

func (s *Settings) Broker(name string, log *slog.Logger) broker.Config {
	return broker.Config{
		Name: name, Record: int(s.limits.frame), MaxAge: s.mailbox.maxAge, MaxRecords: s.mailbox.maxRecords, ShardBytes: int64(s.mailbox.shardBytes),
		Calls: s.calls.keeps(), BookKeep: s.IAT.keep, Shares: broker.Shares{Tenant: admission.TenantShare, Own: admission.PrincipalShare}, Turns: s.Server.Turns, Log: log,
	}
}

func (s *Settings) Presence(log *slog.Logger) presence.Config {
	return presence.Config{
		Grace: s.session.grace, Known: s.mailbox.maxAge, EmptyGrace: s.spaces.emptyGrace, MaxMembers: s.spaces.maxMembers, Log: log,
	}
}

func (s *Settings) Node(id string, log *slog.Logger) edge.Config {
	dialer, err := s.dial.dialer()
	if err != nil {
		panic(err) // faults has found it
	}
	return edge.Config{
		Dialer: dialer,
		ID:     id, Heartbeat: s.session.heartbeat, Timeout: s.session.timeout, MailboxOff: !bool(s.mailbox.on),
		Register: s.session.register, MaxAge: s.mailbox.maxAge, MaxRecords: s.mailbox.maxRecords, NoAutoCreate: !s.spaces.autoCreate, WholeRoster: s.spaces.wholeRoster, DeltaThreshold: int(s.spaces.deltaThreshold), Moving: edge.Moving{Rate: s.drainRate, Percent: s.rebalance},
		Depth: s.limits.depth, Limits: s.Limits(), Log: log,
	}
}

func (s *Settings) Web(log *slog.Logger) web.Config {
	return web.Config{
		Pages: s.Server.Pages(), Body: int(s.limits.body), Depth: s.limits.depth, DrainRate: s.drainRate, Log: log,
	}
}

func (s *Settings) WS(log *slog.Logger) ws.Config {
	return ws.Config{
		Pages: s.Server.Pages(), MaxErrors: s.limits.errors,
		Limits: wire.Limits{Depth: s.limits.depth, Name: s.limits.name}, Turns: s.Server.Turns, Log: log,
	}
}

// Limits returns what every edge is bounded by.
func (s *Settings) Limits() admission.Limits {
	m := &s.admission
	return admission.Limits{
		Frame: int(s.limits.frame), Card: int(s.limits.card), Streams: s.limits.streams, Spaces: s.limits.spaces, Rate: s.limits.rate, Bytes: s.limits.bytes, Burst: s.limits.burst,
		PrincipalRate: s.usage.rate, PrincipalBytes: s.usage.bytes, TenantRate: m.tenantRate, TenantBytes: m.tenantBytes, PerPrincipal: m.perPrincipal, PerIP: m.perIP,
		Handshakes: m.handshakes, HandshakesPerIP: m.handshakesPerIP,
		Calls: s.calls.ofAgent, EdgeCalls: s.calls.ofEdge, Nodes: s.AIP.nodes, EdgeStreams: s.usage.streams, EdgeSpaces: s.usage.spaces, EdgeNodes: s.usage.nodes,
		Registrations: s.usage.cluster.ownRegistrations, ClusterRegistrations: s.usage.cluster.registrations, ClusterCards: int64(s.usage.cluster.cards),
		Shard: int64(s.mailbox.shardBytes), Approvals: s.usage.cluster.ownApprovals, ClusterApprovals: s.usage.cluster.approvals,
		Connections: s.admission.connections, Queued: int64(s.admission.queued),
	}
}
