package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened returns the authenticator of a configuration that is good, until the test ends.
func opened(t *testing.T, cfg Config) edge.Authenticator {
	t.Helper()
	a, end, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return a
}

// wrote makes a file of a text, and returns its path.
func wrote(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask presents a token.
func ask(a edge.Authenticator, token string) (edge.Principal, error) {
	return a.Authenticate(context.Background(), edge.Credentials{Token: token})
}

// refused says that credentials must be refused with a code, in words that hold some text.
func refused(t *testing.T, err error, code agora.Code, text string) {
	t.Helper()
	e, ok := errors.AsType[*agora.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("error = %v, want %s with %q", err, code, text)
	}
}

func madeToken(t *testing.T, name string) (token, line string) {
	t.Helper()
	token, line, err := NewToken(Line{Name: name, Agents: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	return token, line
}

func TestATokenFileIsReadAgainAndWhatItNoLongerGrantsIsTakenBack(t *testing.T) {
	t.Parallel()
	jane, janeLine := madeToken(t, "jane")
	joe, joeLine := madeToken(t, "joe")
	path := wrote(t, janeLine)
	a := opened(t, Config{Ways: []string{"file:" + path}}).(edge.Warden)
	p, err := ask(a, jane)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask(a, joe)
	refused(t, err, agora.Unauthorized, "not valid")

	before := a.Version()
	rewrite(t, path, janeLine+"\n"+joeLine)
	await.True(t, "joe's token is good", func() bool { _, err := ask(a, joe); return err == nil })
	if err := a.Revalidate(&p); err != nil {
		t.Errorf("jane, whose line has not changed: %v", err)
	}
	rewrite(t, path, janeLine+" tenant=acme\n"+joeLine)
	await.True(t, "jane's other rights are told", func() bool { return a.Revalidate(&p) != nil })
	refused(t, a.Revalidate(&p), agora.Unavailable, "connect again")
	rewrite(t, path, joeLine)
	await.True(t, "jane's token is not good", func() bool { _, err := ask(a, jane); return err != nil })
	refused(t, a.Revalidate(&p), agora.Unauthorized, "not valid any more")
	await.True(t, "the version changes", func() bool { return a.Version() >= before+3 })

	rewrite(t, path, "what is this?")
	if _, err := a.(*Gate).ways[0].(*tokenFile).file.Look(); err == nil {
		t.Error("a file that can't be read is taken")
	}
	if _, err := ask(a, joe); err != nil {
		t.Errorf("with a file that can't be read what it said before stays in force: %v", err)
	}
}

func TestTheFirstWayThatKnowsTheCredentialsDecides(t *testing.T) {
	jane, line := madeToken(t, "jane")
	s := newSigner(t)
	a := opened(t, Config{
		Ways: []string{"file:" + wrote(t, line), "jwt", "mtls"},
		JWT:  JWT{JWKS: wrote(t, s.set(t)), Audience: "agora"},
	})
	for _, c := range []struct {
		about, want string
		credentials edge.Credentials
	}{
		{"a token of the file", "jane", edge.Credentials{Token: jane}},
		{"a signed one", "joe", edge.Credentials{Token: s.sign(t, claims("joe"))}},
		{"a certificate", "jim", edge.Credentials{Peer: certificate(t, "jim")}},
		{"a certificate and a token of the file", "jane", edge.Credentials{Token: jane, Peer: certificate(t, "jim")}},
	} {
		if p, err := a.Authenticate(t.Context(), c.credentials); err != nil || p.Name != c.want {
			t.Errorf("%s: %q, %v, want %q", c.about, p.Name, err, c.want)
		}
	}
	expired := claims("joe")
	expired["exp"] = time.Now().Add(-time.Hour).Unix()
	_, err := a.Authenticate(t.Context(), edge.Credentials{Token: s.sign(t, expired), Peer: certificate(t, "jim")})
	refused(t, err, agora.Unauthorized, "expired")
	_, err = ask(a, "")
	refused(t, err, agora.Unauthorized, "required")
	_, err = ask(a, "nobody's")
	refused(t, err, agora.Unauthorized, "not valid")
	_, err = ask(a, strings.Repeat("e", MaxToken+1))
	refused(t, err, agora.Unauthorized, "longer")
}

func TestWhatIsRevokedIsRefusedAndTakenBack(t *testing.T) {
	jane, line := madeToken(t, "jane")
	s := newSigner(t)
	list := wrote(t, "# nobody yet\n")
	a := opened(t, Config{
		Ways: []string{"file:" + wrote(t, line), "jwt", "mtls"}, Revoked: list,
		JWT: JWT{JWKS: wrote(t, s.set(t)), Audience: "agora"},
	}).(edge.Warden)
	old := claims("joe", "jti", "7", "iat", time.Now().Add(-time.Hour).Unix())
	undated := claims("ann")
	delete(undated, "iat")
	cert := edge.Credentials{Peer: certificate(t, "jim")}
	for _, c := range []struct {
		about, line string
		credentials edge.Credentials
		hit         bool
	}{
		{"the name of a line", "name jane", edge.Credentials{Token: jane}, true},
		{"a name of the tenant", "name jane tenant=default", edge.Credentials{Token: jane}, true},
		{"a name of another tenant", "name jane tenant=acme", edge.Credentials{Token: jane}, false},
		{"the name of a token", "name joe", edge.Credentials{Token: s.sign(t, old)}, true},
		{"an id", "jti 7", edge.Credentials{Token: s.sign(t, old)}, true},
		{"another id", "jti 8", edge.Credentials{Token: s.sign(t, old)}, false},
		{"an id that is a name", "jti jane", edge.Credentials{Token: jane}, false},
		{"all of before", "before " + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), edge.Credentials{Token: s.sign(t, old)}, true},
		{"those that don't say when", "before 1000", edge.Credentials{Token: s.sign(t, undated)}, true},
		{"none of after", "before 1000", edge.Credentials{Token: s.sign(t, old)}, false},
		{"a token of the file has no date", "before 4000000000", edge.Credentials{Token: jane}, false},
		{"a serial number", "serial 0A:Bc", cert, true},
		{"another serial number", "serial abd", cert, false},
	} {
		t.Run(c.about, func(t *testing.T) {
			rewrite(t, list, "")
			look(t, a)
			p, err := a.Authenticate(t.Context(), c.credentials)
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, list, c.line)
			look(t, a)
			_, err = a.Authenticate(t.Context(), c.credentials)
			if !c.hit {
				if err != nil || a.Revalidate(&p) != nil {
					t.Errorf("refused: %v, %v", err, a.Revalidate(&p))
				}
				return
			}
			refused(t, err, agora.Unauthorized, "revoked")
			refused(t, a.Revalidate(&p), agora.Unauthorized, "revoked")
		})
	}
}

// look has the list of what is revoked read now.
func look(t *testing.T, a edge.Warden) {
	t.Helper()
	if _, err := a.(*Gate).revoked.Look(); err != nil {
		t.Fatal(err)
	}
}

func TestABadRevocationListIsRefusedByLine(t *testing.T) {
	for _, bad := range []string{"jane", "name", "name a b c", "who jane", "before noon", "name %zz", "name a tenant"} {
		if _, err := parseRevocations([]byte("name x\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error about line 2", bad, err)
		}
	}
}

func TestSettingsThatMakeNoSenseAreTold(t *testing.T) {
	for text, cfg := range map[string]Config{
		"must be given":         {},
		"nothing can stand":     {Ways: []string{"none", "jwt"}, JWT: JWT{SecretFile: "x"}},
		"a list of":             {Ways: []string{"open"}},
		"path of a token file":  {Ways: []string{"file:"}},
		"needs either":          {Ways: []string{"jwt"}},
		"needs auth.jwt.audien": {Ways: []string{"jwt"}, JWT: JWT{JWKS: "keys.json"}},
		"begin with https://":   {Ways: []string{"jwt"}, JWT: JWT{JWKS: "http://example.com/keys", Audience: "a"}},
		"leeway":                {Ways: []string{"jwt"}, JWT: JWT{SecretFile: "x", Leeway: time.Hour}},
		"needs jwt in auth":     {Ways: []string{"mtls"}, JWT: JWT{Issuer: "x"}},
	} {
		if _, _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", cfg, err, text)
		}
	}
}
