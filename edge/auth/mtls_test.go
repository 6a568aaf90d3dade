package auth

import (
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// certificate returns one as a listener has verified it, with DNS names and the serial number 0xabc.
func certificate(t *testing.T, names ...string) []*x509.Certificate {
	t.Helper()
	return []*x509.Certificate{{
		SerialNumber: big.NewInt(0xabc), DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}}
}

func withURIs(t *testing.T, uris ...string) []*x509.Certificate {
	t.Helper()
	c := certificate(t)
	for _, raw := range uris {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		c[0].URIs = append(c[0].URIs, u)
	}
	return c
}

func TestACertificatesNamesAreTheAgentsThatItsOwnerMayBe(t *testing.T) {
	a := opened(t, Config{Ways: []string{"mtls"}})
	for _, c := range []struct {
		peer   []*x509.Certificate
		tenant string
		agents []string
	}{
		{certificate(t, "jane.example.com", "bot"), agora.DefaultTenant, []string{"jane.example.com", "bot"}},
		{withURIs(t, "spiffe://example.com/ns/a/sa/b"), agora.DefaultTenant, []string{"spiffe://example.com/ns/a/sa/b"}},
		{withURIs(t, "agora://acme/Jane%20Doe", "agora://acme/jane/laptop"), "acme", []string{"Jane Doe", "jane/laptop"}},
	} {
		p, err := a.Authenticate(t.Context(), edge.Credentials{Peer: c.peer})
		if err != nil || p.Tenant != c.tenant || !slices.Equal(p.Agents, c.agents) || p.Name != c.agents[0] || p.ID != "abc" || !p.Expires.Equal(c.peer[0].NotAfter) {
			t.Errorf("principal = %+v, %v, want %v of %s", p, err, c.agents, c.tenant)
		}
	}
}

// Each name of a certificate is of a tenant, whatever its kind and wherever it stands: those of two are refused.
func TestACertificateIsOfOneTenantByAllOfItsNames(t *testing.T) {
	a := opened(t, Config{Ways: []string{"mtls"}})
	tenants := map[string]string{
		"DNS:y": "default", "DNS:z.example.com": "default", "URI:spiffe://example.com/x": "default", "URI:https://example.com/y": "default", "URI:agora://default/x": "default",
		"URI:agora://acme/x": "acme", "URI:agora://acme/y": "acme", "URI:agora://other/x": "other", "URI:agora://ACME/x": "ACME", "URI:agora://Default/x": "Default",
	}
	cert := func(names ...string) []*x509.Certificate {
		c := certificate(t)
		c[0].IPAddresses, c[0].EmailAddresses = []net.IP{net.IPv4(192, 0, 2, 1)}, []string{"x@acme"} // which name nobody here
		for _, name := range names {
			if dns, is := strings.CutPrefix(name, "DNS:"); is {
				c[0].DNSNames = append(c[0].DNSNames, dns)
			} else {
				c[0].URIs = append(c[0].URIs, withURIs(t, strings.TrimPrefix(name, "URI:"))[0].URIs...)
			}
		}
		return c
	}
	for one, first := range tenants {
		for two, second := range tenants {
			for _, names := range [][]string{{one, two}, {one, two, one}, {one, one, two}} {
				p, err := a.Authenticate(t.Context(), edge.Credentials{Peer: cert(names...)})
				if first != second {
					refused(t, err, agora.Unauthorized, "several tenants")
				} else if err != nil || p.Tenant != first || len(p.Agents) != len(names) {
					t.Errorf("%q: %+v, %v, want tenant %s", names, p, err, first)
				}
			}
		}
	}
}

func TestACertificateWhoseNamesAreNoAgentsIsRefused(t *testing.T) {
	a := opened(t, Config{Ways: []string{"mtls"}})
	subject := certificate(t)
	subject[0].Subject.CommonName = "jane"
	for about, peer := range map[string][]*x509.Certificate{
		"a name in the subject alone": subject,
		"a pattern":                   certificate(t, "*"),
		"a pattern at the end":        withURIs(t, "agora://acme/bot-*"),
		"an escaped pattern":          withURIs(t, "agora://acme/bot-%2A"),
		"two tenants":                 withURIs(t, "agora://acme/jane", "agora://other/jane"),
		"a tenant and none":           withURIs(t, "agora://acme/jane", "spiffe://example.com/x"),
		"a user of a tenant":          withURIs(t, "agora://acme@other/jane"),
		"no tenant":                   withURIs(t, "agora:jane"),
		"no agent":                    withURIs(t, "agora://acme/"),
		"an unprintable agent":        withURIs(t, "agora://acme/a%00b"),
		"a query":                     withURIs(t, "agora://acme/jane?x=y"),
	} {
		p, err := a.Authenticate(t.Context(), edge.Credentials{Peer: peer})
		if err == nil {
			t.Errorf("%s: let in as %+v", about, p)
			continue
		}
		refused(t, err, agora.Unauthorized, "certificate")
	}
}
