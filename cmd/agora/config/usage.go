package config

import "github.com/spf13/pflag"

// usageSettings bound what all agents of one edge together hold for a while, and what those of one principal say.
type usageSettings struct {
	streams, spaces, nodes int
	rate, bytes            float64
}

func (s *usageSettings) flags(f *pflag.FlagSet) {
	f.IntVar(&s.streams, "limits.edge.streams", 1<<18, "streams open at one edge; a tenant, and a principal, may have a share of them")
	f.IntVar(&s.spaces, "limits.edge.spaces", 1<<22, "memberships in spaces of all agents of one edge; a tenant, and a principal, may have a share of them")
	f.IntVar(&s.nodes, "limits.edge.nodes", 1<<15, "AIP nodes at one edge, those of linked gateways included; a tenant, and a principal, may have a share of them")
	f.Float64Var(&s.rate, "limits.principal.rate", 0, "messages per second of all agents of one principal at one edge; 0 for 16 times limits.rate")
	f.Float64Var(&s.bytes, "limits.principal.bytes", 0, "bytes per second of all agents of one principal at one edge; 0 for 16 times limits.bytes")
}

func (s *usageSettings) faults() []error {
	return append(atLeastOne(map[string]int64{
		"limits.edge.streams": int64(s.streams), "limits.edge.spaces": int64(s.spaces), "limits.edge.nodes": int64(s.nodes),
	}), notNegative(map[string]float64{"limits.principal.rate": s.rate, "limits.principal.bytes": s.bytes})...)
}
