package config

import (
	"github.com/spf13/pflag"
)

// admissionSettings bound what one edge takes: of everybody, of a tenant, a principal and an address.
type admissionSettings struct {
	connections                 int
	queued                      size
	tenantRate, tenantBytes     float64
	perPrincipal, perIP         int
	handshakes, handshakesPerIP float64
}

func (s *admissionSettings) flags(f *pflag.FlagSet) {
	f.IntVar(&s.connections, "limits.connections", 0, "connections, and HTTP requests at a time, of one edge; 0 for as many as the process may open files for, with room to spare")
	s.queued = 256 << 20
	f.Var(&s.queued, "limits.queued", "bytes that one edge holds for all its connections together, before it sheds the newest")
	f.Float64Var(&s.tenantRate, "limits.tenant.rate", 0, "messages per second of all agents of one tenant at one edge; 0 for no limit")
	f.Float64Var(&s.tenantBytes, "limits.tenant.bytes", 0, "bytes per second of all agents of one tenant at one edge; 0 for no limit")
	f.IntVar(&s.perPrincipal, "limits.connections-per-principal", 0, "connections of one principal at one edge; 0 for no limit")
	f.IntVar(&s.perIP, "limits.connections-per-ip", 0, "connections from one address (of IPv6 one /64) at one edge; 0 for no limit")
	f.Float64Var(&s.handshakes, "limits.handshakes", 0, "handshakes, and HTTP requests, per second at one edge; 0 for no limit")
	f.Float64Var(&s.handshakesPerIP, "limits.handshakes-per-ip", 0, "handshakes, and HTTP requests, per second from one address (of IPv6 one /64) at one edge; 0 for no limit")
}

func (s *admissionSettings) faults() []error {
	return notNegative(map[string]float64{
		"limits.connections": float64(s.connections), "limits.tenant.rate": s.tenantRate, "limits.tenant.bytes": s.tenantBytes,
		"limits.connections-per-principal": float64(s.perPrincipal), "limits.connections-per-ip": float64(s.perIP),
		"limits.handshakes": s.handshakes, "limits.handshakes-per-ip": s.handshakesPerIP,
	})
}
