package config

import "github.com/spf13/pflag"

// usageSettings bound what all agents of one edge together hold for a while, and what those of one principal say.
type usageSettings struct {
	streams, spaces, nodes int
	rate, bytes            float64
	cluster                clusterSettings
}

// clusterSettings bound what all agents of the cluster together hold.
type clusterSettings struct {
	ownRegistrations, registrations int
	ownApprovals, approvals         int
	cards                           size
}

func (s *usageSettings) flags(f *pflag.FlagSet) {
	f.IntVar(&s.streams, "limits.edge.streams", 1<<18, "streams open at one edge; a tenant, and a principal, may have a share of them")
	f.IntVar(&s.spaces, "limits.edge.spaces", 1<<22, "memberships in spaces of all agents of one edge; a tenant, and a principal, may have a share of them")
	f.IntVar(&s.nodes, "limits.edge.nodes", 1<<15, "AIP nodes at one edge, those of linked gateways included; a tenant, and a principal, may have a share of them")
	f.Float64Var(&s.rate, "limits.principal.rate", 0, "messages per second of all agents of one principal at one edge; 0 for 16 times limits.rate")
	f.Float64Var(&s.bytes, "limits.principal.bytes", 0, "bytes per second of all agents of one principal at one edge; 0 for 16 times limits.bytes")
	s.cluster.flags(f)
}

func (s *clusterSettings) flags(f *pflag.FlagSet) {
	f.IntVar(&s.ownRegistrations, "limits.registrations", 0, "registrations without a connection of one principal in the cluster; 0 for its share of limits.cluster.registrations")
	f.IntVar(&s.registrations, "limits.cluster.registrations", 1<<16, "registrations without a connection in the cluster, the same at all edges; a tenant, and a principal, may have a share of them")
	s.cards = 128 << 20
	f.Var(&s.cards, "limits.cluster.cards", "bytes of what all agents of the cluster say of themselves, the same at all edges; a tenant, and a principal, may have a share of them")
	f.IntVar(&s.ownApprovals, "limits.approvals", 256, "approvals pending of one agent in the cluster")
	f.IntVar(&s.approvals, "limits.cluster.approvals", 10_000, "approvals pending in the cluster, the same at all edges; a tenant, and a principal, may have a share of them")
}

func (s *clusterSettings) faults() []error {
	return append(atLeastOne(map[string]int64{
		"limits.cluster.registrations": int64(s.registrations), "limits.cluster.cards": int64(s.cards),
		"limits.approvals": int64(s.ownApprovals), "limits.cluster.approvals": int64(s.approvals),
	}), notNegative(map[string]float64{"limits.registrations": float64(s.ownRegistrations)})...)
}

func (s *usageSettings) faults() []error {
	return append(append(s.cluster.faults(), atLeastOne(map[string]int64{
		"limits.edge.streams": int64(s.streams), "limits.edge.spaces": int64(s.spaces), "limits.edge.nodes": int64(s.nodes),
	})...), notNegative(map[string]float64{"limits.principal.rate": s.rate, "limits.principal.bytes": s.bytes})...)
}
