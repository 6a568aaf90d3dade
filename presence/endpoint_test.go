package presence_test

import (
	"errors"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// reaching returns a request for a session of an agent of a tenant, dialled at an address that reaches what has some
// names.
func reaching(tenant string, id agora.AgentID, address string, names ...string) presence.ClaimRequest {
	r := dialledTo(id, "e1", address)
	r.Tenant, r.Dial.Names = tenant, names
	return r
}

// has returns which agent of which tenant has a name, and whether that may change, as the error of a claim says; its
// text for any other error.
func has(err error) string {
	e, ok := errors.AsType[*presence.AddressError](err)
	if !ok {
		return ""
	}
	pending := ""
	if e.Pending {
		pending = " pending"
	}
	return e.Tenant + " " + string(e.By) + " " + e.Name + pending
}

func TestWhatAnAddressReachesIsOneAgentsInAllTenants(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		ok(t, s.SetWhole(t.Context()))
		claims := func(r presence.ClaimRequest) string {
			t.Helper()
			_, err := s.Sessions.Claim(t.Context(), r)
			if taken := has(err); taken != "" || err == nil {
				return taken
			}
			return err.Error()
		}
		r := reaching(tenant, "a", "x:1", "n1", "n2")
		must(s.Leases.Renew(t.Context(), r.Holder, ""))(t)
		c, rec := begun(t, s, r)
		if got, want := claims(reaching("u", "b", "y:1", "n0", "n2")), tenant+" a n2"; got != want {
			t.Errorf("b of another tenant: %q, want %q", got, want)
		}
		if got := claims(reaching("u", "c", "y:1", "n0")); got != "" {
			t.Errorf("c has what b was refused along with another: %q", got)
		}
		again := reaching(tenant, "a", "z:1", "n3")
		again.Session, again.Conn, again.Principal = "another", "another", "mallory"
		if got, want := claims(again), presence.ErrExists.Error(); got != want {
			t.Errorf("a, which has a session: %q, want %q", got, want)
		}
		if got, want := claims(reaching("u", "d", "v:1", "n1")), tenant+" a n1"; got != want {
			t.Errorf("after that, what a has: %q, want %q", got, want)
		}
		if got := claims(reaching("u", "d", "v:1", "n3")); got != "" {
			t.Errorf("and what it was not given: %q", got)
		}
		ended(t, s, c)
		ok(t, s.Dials.FreeAddress(t.Context(), c, *rec.Dial))
		if got := claims(reaching("u", "e", "w:1", "n1", "n2")); got != "" {
			t.Errorf("what a had before its session was over: %q", got)
		}
	})
}

func TestASessionHasWhatItsAddressReachesNow(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		ok(t, s.SetWhole(t.Context()))
		_, _ = begun(t, s, reaching(tenant, "a", "x:1", "n1", "n2"))
		_, _ = begun(t, s, reaching("u", "b", "y:1", "n3"))
		if err := s.Dials.Reaches(t.Context(), tenant, "a", "x:1", []string{"n1", "n9"}); err != nil {
			t.Errorf("its own, and nobody's: %v", err)
		}
		if got, want := has(s.Dials.Reaches(t.Context(), tenant, "a", "x:1", []string{"n1", "n3"})), "u b n3"; got != want {
			t.Errorf("another's: %q, want %q", got, want)
		}
		ok(t, s.Dials.Renew(t.Context(), tenant, "a", "x:1", []string{"n2", "n4"}))
		if got, want := has(s.Dials.Renew(t.Context(), tenant, "a", "x:1", []string{"n3", "n4"})), "u b n3"; got != want {
			t.Errorf("when it reaches another's: %q, want %q", got, want)
		}
		_, _ = begun(t, s, reaching("u", "c", "z:1", "n1"))
		if _, err := s.Sessions.Claim(t.Context(), reaching("u", "d", "z:2", "n4")); has(err) != tenant+" a n4" {
			t.Errorf("what it reaches since: %v", err)
		}
		ok(t, s.Dials.Renew(t.Context(), tenant, "nobody", "x:1", []string{"n7"}))
		if _, err := s.Sessions.Claim(t.Context(), reaching("u", "d", "z:2", "n7")); err != nil {
			t.Errorf("what was renewed for nobody: %v", err)
		}
	})
}
