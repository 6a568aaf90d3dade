package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/presence"
)

// credentials say who somebody is, and what the rules let it do.
type credentials struct {
	verifier Authenticator
	policy   *policy.Policy
}

// identify returns who presents credentials.
func (d *credentials) identify(ctx context.Context, c Credentials) (*Principal, error) {
	p, err := d.verifier.Authenticate(ctx, c)
	if err != nil {
		return nil, err
	}
	if p.Tenant == "" {
		p.Tenant = agora.DefaultTenant
	}
	if presence.IsLink(p.Name) {
		return nil, agora.Errorf(agora.Unauthorized, "no principal may have that name")
	}
	return &p, nil
}

// unverified returns who everybody is that shows no credentials; nil where there is authentication.
func (d *credentials) unverified(ctx context.Context) *Principal {
	p, err := d.identify(ctx, Credentials{})
	if err != nil || !p.Unverified {
		return nil
	}
	return p
}

// grantOf returns what a principal may do now.
func (d *credentials) grantOf(who *Principal) *policy.Grant {
	return grantBy(d.policy.Rules(), who)
}

func grantBy(rules *policy.Rules, who *Principal) *policy.Grant {
	return rules.Grant(policy.Subject{Name: who.Name, Tenant: who.Tenant, Roles: who.Roles}, who.Scope)
}
