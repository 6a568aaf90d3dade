package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// limitSettings bound what tenants, principals and addresses may do, and say whose word is taken about addresses.
type limitSettings struct {
	tenantRate, tenantBytes     float64
	perPrincipal, perIP         int
	handshakes, handshakesPerIP float64
	trusted                     []string
	card                        size
	register                    time.Duration
	proxyProtocol               bool
	policy                      string
}

func (s *limitSettings) flags(f *pflag.FlagSet) {
	f.DurationVar(&s.register, "register.ttl", time.Hour, "how long an agent that registers without a connection is listed after its last sign, if it does not say so itself")
	s.card = 256 << 10
	f.Var(&s.card, "limits.card", "bytes of what an agent says of itself, schemas of its skills and tools included")
	f.Float64Var(&s.tenantRate, "limits.tenant.rate", 0, "messages per second of all agents of one tenant at one edge; 0 for no limit")
	f.Float64Var(&s.tenantBytes, "limits.tenant.bytes", 0, "bytes per second of all agents of one tenant at one edge; 0 for no limit")
	f.IntVar(&s.perPrincipal, "limits.connections-per-principal", 0, "connections of one principal at one edge; 0 for no limit")
	f.IntVar(&s.perIP, "limits.connections-per-ip", 0, "connections from one address (of IPv6 one /64) at one edge; 0 for no limit")
	f.Float64Var(&s.handshakes, "limits.handshakes", 0, "handshakes, and HTTP requests, per second at one edge; 0 for no limit")
	f.Float64Var(&s.handshakesPerIP, "limits.handshakes-per-ip", 0, "handshakes, and HTTP requests, per second from one address (of IPv6 one /64) at one edge; 0 for no limit")
	f.StringSliceVar(&s.trusted, "server.trusted-proxies", nil, "networks of balancers whose X-Forwarded-For and PROXY headers are taken, such as 10.0.0.0/8")
	f.StringVar(&s.policy, "policy", "", "file of rules: who may do what; everybody everything if empty")
	f.BoolVar(&s.proxyProtocol, "server.proxy-protocol", false, "connections from trusted proxies begin with a PROXY protocol v2 header")
}

func (s *limitSettings) faults() (all []error) {
	for name, n := range map[string]float64{
		"limits.tenant.rate": s.tenantRate, "limits.tenant.bytes": s.tenantBytes,
		"limits.connections-per-principal": float64(s.perPrincipal), "limits.connections-per-ip": float64(s.perIP),
		"limits.handshakes": s.handshakes, "limits.handshakes-per-ip": s.handshakesPerIP,
	} {
		all = append(all, unless(n >= 0, name+" can't be negative"))
	}
	all = append(all, unless(s.register >= edge.MinRegister && s.register <= edge.MaxRegister, "register.ttl must be 1m to 24h"))
	all = append(all, unless(s.card >= 1<<10 && s.card <= 1<<20, "limits.card must be 1KiB to 1MiB"))
	_, err := s.proxies()
	return append(all, err, unless(!s.proxyProtocol || len(s.trusted) > 0, "server.proxy-protocol needs server.trusted-proxies"))
}

// proxies returns the networks that are trusted.
func (s *limitSettings) proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range s.trusted {
		text = strings.TrimSpace(text)
		if a, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("server.trusted-proxies: %q is no network, such as 10.0.0.0/8", text)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("server.trusted-proxies: write %q as a network of IPv4", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// limits returns what every edge is bounded by.
func (s *settings) limits() admission.Limits {
	m := &s.more
	return admission.Limits{
		Frame: int(s.frame), Card: int(m.card), Streams: s.streams, Spaces: s.spaces, Rate: s.rate, Bytes: s.bytes, Burst: s.burst,
		TenantRate: m.tenantRate, TenantBytes: m.tenantBytes, PerPrincipal: m.perPrincipal, PerIP: m.perIP,
		Handshakes: m.handshakes, HandshakesPerIP: m.handshakesPerIP,
		Calls: s.calls.ofAgent, EdgeCalls: s.calls.ofEdge, Connections: s.connections, Queued: int64(s.queued),
	}
}

// trust has the edge take the word of the proxies that the settings name.
func (e *edgeServer) trust(s *limitSettings) error {
	trusted, err := s.proxies()
	if err != nil {
		return err
	}
	e.proxies.Set(trusted)
	return nil
}
