package auth

import (
	"context"
	"crypto/x509"
	"net/url"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/reload"
)

const sourceTLS = "mtls"

// mutualTLS is the way in by a client's certificate, which the listener has
// verified. Each of its alternative names is an agent id that its owner may be:
//
//   - a DNS name, as it stands, of the default tenant;
//   - the URI agora://TENANT/ID, which also names the tenant, escaped like a URL's path;
//   - any other URI, as it stands, of the default tenant.
//
// All of them are of one tenant. Names in the subject, addresses and e-mail addresses say nothing, and no name is a pattern.
type mutualTLS struct{}

func (mutualTLS) knows(c edge.Credentials) bool { return len(c.Peer) > 0 }

func (mutualTLS) authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	cert := c.Peer[0]
	p := edge.Principal{
		ID: serial(cert.SerialNumber.Text(16)), Source: sourceTLS,
		Issued: cert.NotBefore, Expires: cert.NotAfter,
	}
	if err := grantNames(&p, cert); err != nil {
		return edge.Principal{}, err
	}
	p.Name = p.Agents[0]
	return p, nil
}

func grantNames(p *edge.Principal, cert *x509.Certificate) error {
	for _, u := range cert.URIs {
		id, tenant, err := idOf(u)
		if err != nil {
			return err
		}
		if err := grantName(p, id, tenant); err != nil {
			return err
		}
	}
	for _, id := range cert.DNSNames {
		if err := grantName(p, id, agora.DefaultTenant); err != nil {
			return err
		}
	}
	if len(p.Agents) == 0 {
		return agora.Errorf(agora.Unauthorized, "the certificate has no alternative name that could be an agent's id")
	}
	for _, id := range p.Agents {
		if !literal(id) {
			return agora.Errorf(agora.Unauthorized, "a name in the certificate can't be an agent's id")
		}
	}
	return nil
}

// grantName adds a name of a tenant. All names of a certificate are of one.
func grantName(p *edge.Principal, id, tenant string) error {
	if p.Tenant != "" && tenant != p.Tenant {
		return agora.Errorf(agora.Unauthorized, "the certificate has names of several tenants")
	}
	p.Tenant = tenant
	p.Agents = append(p.Agents, id)
	return nil
}

func idOf(u *url.URL) (id, tenant string, err error) {
	if u.Scheme != "agora" {
		return u.String(), agora.DefaultTenant, nil
	}
	if !tenantName(u.Host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", "", agora.Errorf(agora.Unauthorized, "the certificate has a name that is not agora://TENANT/ID")
	}
	return strings.TrimPrefix(u.Path, "/"), u.Host, nil
}

// literal reports whether an id is one, and not also a pattern.
func literal(id string) bool {
	_, err := agora.ParseOwnID(id)
	return err == nil && !strings.HasSuffix(id, "*")
}

func (mutualTLS) standing(*edge.Principal) error { return nil }
func (mutualTLS) sources() []reload.Source       { return nil }
