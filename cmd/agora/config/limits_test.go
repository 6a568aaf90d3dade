package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestBadLimitsAreRefusedByName(t *testing.T) {
	for want, args := range map[string][]string{
		"limits.tenant.rate":                   {"--limits.tenant.rate", "-1"},
		"limits.connections-per-ip":            {"--limits.connections-per-ip", "-1"},
		"server.trusted-proxies":               {"--server.trusted-proxies", "10.0.0.0/8,balancer"},
		"write \"::ffff:10.0.0.0/104\"":        {"--server.trusted-proxies", "::ffff:10.0.0.0/104"},
		"server.proxy-protocol needs server.t": {"--server.proxy-protocol"},
	} {
		if _, err := parse(t, nil, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want one about %s", args, err, want)
		}
	}
	s, err := parse(t, map[string]string{"AGORA_LIMITS_HANDSHAKES_PER_IP": "2.5"}, "--server.trusted-proxies", "10.1.2.3,2001:db8::/32", "--limits.tenant.bytes", "7")
	if l := s.Limits(); err != nil || l.HandshakesPerIP != 2.5 || l.TenantBytes != 7 {
		t.Errorf("limits = %+v, %v", l, err)
	}
	if p, err := s.Server.Proxies(); err != nil || fmt.Sprint(p) != "[10.1.2.3/32 2001:db8::/32]" {
		t.Errorf("trusted = %v, %v", p, err)
	}
}
