package auth

import (
	"testing"

	"github.com/agora-relay/agora/edge"
)

func TestWithoutAuthenticationAPrincipalIsSaidToBeUnverified(t *testing.T) {
	p, err := None().Authenticate(t.Context(), edge.Credentials{})
	if err != nil || !p.Unverified || !p.Any {
		t.Errorf("Authenticate = %+v, %v", p, err)
	}
}
