package auth

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/reload"
)

// counting is a way in for every token that does not begin with "bad": it names the token's party, and counts what it
// verifies.
type counting struct {
	verified int
	expires  time.Time
	lost     map[string]bool // names that are taken back without anybody being told
	before   func()          // called before it answers
}

func (w *counting) knows(c edge.Credentials) bool { return c.Token != "" || len(c.Peer) > 0 }

func (w *counting) authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	w.verified++
	if w.before != nil {
		w.before()
	}
	if strings.HasPrefix(c.Token, "bad") {
		return edge.Principal{}, errInvalid
	}
	name, tenant, _ := strings.Cut(c.Token, "@")
	return edge.Principal{Name: name, Tenant: tenant, Agents: []string{name}, Expires: w.expires}, nil
}

func (w *counting) standing(p *edge.Principal) error {
	if w.lost[p.Name] {
		return errGone
	}
	return nil
}

func (w *counting) sources() []reload.Source { return nil }

func counted() (*Gate, *counting) {
	w := &counting{}
	return &Gate{ways: []Way{w}, seen: newSeen()}, w
}

// wants asks with a token, and wants so many to have been verified in all by then.
func wants(t *testing.T, about string, g *Gate, token string, verified int) edge.Principal {
	t.Helper()
	p, err := g.Authenticate(t.Context(), edge.Credentials{Token: token})
	if strings.HasPrefix(token, "bad") != (err != nil) {
		t.Errorf("%s: %v", about, err)
	}
	if n := g.ways[0].(*counting).verified; n != verified {
		t.Errorf("%s: %d verified, want %d", about, n, verified)
	}
	return p
}

func TestCredentialsAreVerifiedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := counted()
		wants(t, "the first time", g, "jane", 1)
		wants(t, "again", g, "jane", 1)
		if p := wants(t, "the same name in another tenant", g, "jane@acme", 2); p.Tenant != "acme" {
			t.Errorf("of tenant %q, want acme", p.Tenant)
		}
		if p := wants(t, "the first one", g, "jane", 2); p.Tenant != "" || p.Name != "jane" {
			t.Errorf("it is taken for %+v", p)
		}
		for k, raw := range []string{"one", "one", "other"} {
			peer := certificate(t, "jane")
			peer[0].Raw = []byte(raw)
			if _, err := g.Authenticate(t.Context(), edge.Credentials{Token: "jane", Peer: peer}); err != nil || w.verified != 3+k/2 {
				t.Errorf("with the certificate %s besides: %v, %d verified, want %d", raw, err, w.verified, 3+k/2)
			}
		}
		time.Sleep(seenFor - time.Nanosecond)
		wants(t, "just before the minute is over", g, "jane", 4)
		time.Sleep(time.Nanosecond)
		wants(t, "when it is", g, "jane", 5)
	})
}

func TestCredentialsThatEndAreNotTakenForALittleLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := counted()
		w.expires = time.Now().Add(10 * time.Second)
		wants(t, "the first time", g, "jane", 1)
		time.Sleep(10*time.Second - time.Nanosecond)
		wants(t, "just before they end", g, "jane", 1)
		time.Sleep(time.Nanosecond)
		wants(t, "when they do, the verifier says so", g, "jane", 2)
	})
}

func TestWhatIsTakenBackIsVerifiedAnewAtOnce(t *testing.T) {
	g, w := counted()
	wants(t, "the first time", g, "jane", 1)
	g.version.Add(1)
	wants(t, "after anything may have been taken back", g, "jane", 2)
	wants(t, "and then again", g, "jane", 2)
	w.lost = map[string]bool{"jane": true}
	wants(t, "one whose verifier stands no more by it", g, "jane", 3)
	w.before = func() { g.version.Add(1) }
	wants(t, "one that is verified while something is taken back", g, "joe", 4)
	w.before = nil
	wants(t, "is not believed afterwards", g, "joe", 5)
	wants(t, "as one is that was verified after it", g, "joe", 5)
}

func TestAVerificationThatOvertakesARevocationIsForgotten(t *testing.T) {
	s := newSeen()
	one, _ := s.hash(edge.Credentials{Token: "one"})
	two, _ := s.hash(edge.Credentials{Token: "two"})
	s.put(one, 2, edge.Principal{Name: "one"})
	s.put(two, 1, edge.Principal{Name: "two"})
	if _, ok := s.get(two, 2); ok {
		t.Error("what was verified before something was taken back is believed")
	}
	if _, ok := s.get(one, 2); !ok {
		t.Error("what was verified after it is not")
	}
}

func TestRefusedCredentialsAreNotRememberedAndFloodsStayBounded(t *testing.T) {
	g, w := counted()
	for k := range 3 * seenMost {
		wants(t, "a guess", g, fmt.Sprint("bad", k), k+1)
	}
	wants(t, "the same guess", g, "bad0", 3*seenMost+1)
	if n := len(g.seen.now) + len(g.seen.old); n != 0 {
		t.Errorf("%d guesses are remembered", n)
	}
	w.verified = 0
	for k := range 5 * seenMost {
		wants(t, "another party", g, fmt.Sprint("jane", k), k+1)
	}
	if n := len(g.seen.now) + len(g.seen.old); n > 2*seenMost {
		t.Errorf("%d are remembered, want %d at most", n, 2*seenMost)
	}
	wants(t, "the last one", g, fmt.Sprint("jane", 5*seenMost-1), 5*seenMost)
}

func TestNoCredentialsAreKept(t *testing.T) {
	g, _ := counted()
	wants(t, "a party", g, "s3cret-token", 1)
	for h, v := range g.seen.now {
		v.Name, v.Agents = "", nil // which this way makes of it
		if text := fmt.Sprintf("%s %+v", h, v); strings.Contains(text, "s3cret") {
			t.Errorf("the token is kept: %s", text)
		}
	}
	other, _ := counted()
	c := edge.Credentials{Token: "s3cret-token"}
	here, _ := g.seen.hash(c)
	if there, _ := other.seen.hash(c); here == there {
		t.Error("the hash says what the token is to who guesses it")
	}
}

func TestAnExpiredTokenIsRefusedThoughItWasSeen(t *testing.T) {
	s := newSigner(t)
	a := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: wrote(t, s.set(t)), Audience: "agora"}})
	soon := claims("jane")
	soon["exp"] = time.Now().Add(time.Second).Unix()
	token := s.sign(t, soon)
	var err error
	await.True(t, "it is refused once it has ended", func() bool { _, err = ask(a, token); return err != nil })
	refused(t, err, agora.Unauthorized, "expired")
}

func BenchmarkAuthenticate(b *testing.B) {
	for name, fresh := range map[string]bool{"verified": true, "seen": false} {
		b.Run(name, func(b *testing.B) {
			t := new(testing.T)
			all := signers(t)
			path := b.TempDir() + "/keys"
			if err := os.WriteFile(path, []byte(all["RS256"].set(t, all["EdDSA"])), 0o600); err != nil {
				b.Fatal(err)
			}
			a, end, err := Open(Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: path, Audience: "agora"}})
			if err != nil {
				b.Fatal(err)
			}
			defer end()
			c := edge.Credentials{Token: all["RS256"].sign(t, claims("jane"))}
			b.ReportAllocs()
			for b.Loop() {
				if fresh {
					a.(*Gate).version.Add(1)
				}
				if _, err := a.Authenticate(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
