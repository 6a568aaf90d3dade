package auth

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhatAKeyOpenedEndsWhenTheKeyLeavesTheSetAndNotWhenTheSetIsAway(t *testing.T) {
	t.Parallel()
	before, now := newSigner(t), newSigner(t)
	now.id = "key-2"
	p := publish(t, before.set(t))
	a := opened(t, p.tokens(soonAgain)).(edge.Warden)
	jane, err := ask(a, before.sign(t, claims("jane")))
	if err != nil {
		t.Fatal(err)
	}
	version := a.Version()
	for _, answer := range []string{"", `{"keys":[]}`} {
		if p.set.Store(&answer); answer == "" {
			p.set.Store(nil)
		}
		_, err = ask(a, now.sign(t, claims("joe"))) // has the set fetched
		refused(t, err, agora.Unavailable, "can't be fetched now")
		if err := a.Revalidate(&jane); err != nil || a.Version() != version {
			t.Errorf("a set that reads %q ends what its key opened: %v", answer, err)
		}
	}
	both := now.set(t, before)
	p.set.Store(&both)
	await.True(t, "the new key is there", func() bool { _, err := ask(a, now.sign(t, claims("joe"))); return err == nil })
	if err := a.Revalidate(&jane); err != nil {
		t.Errorf("beside another key: %v", err)
	}
	version = a.Version()
	rotated := now.set(t)
	p.set.Store(&rotated)
	_, err = ask(a, signer{"key-3", before.algorithm, before.key}.sign(t, claims("joe")))
	refused(t, err, agora.Unauthorized, "not known")
	refused(t, a.Revalidate(&jane), agora.Unauthorized, "not valid any more")
	if a.Version() == version {
		t.Error("nobody is told to look at the sessions")
	}
	if _, err := a.Authenticate(t.Context(), edge.Credentials{Token: now.sign(t, claims("joe"))}); err != nil {
		t.Error(err)
	}
}

func TestWhatAKeyOpenedEndsWhenItsFileHasAnother(t *testing.T) {
	t.Parallel()
	before, now := newSigner(t), newSigner(t)
	secret := strings.Repeat("s", leastSecret)
	for name, c := range map[string]struct {
		signer
		first, second string
		cfg           JWT
	}{
		"JWKS":   {before, before.set(t), now.set(t), JWT{Audience: "agora"}},
		"secret": {signer{"", jose.HS256, []byte(secret)}, secret, strings.Repeat("t", leastSecret), JWT{}},
	} {
		path := wrote(t, c.first)
		if c.cfg.JWKS = path; name == "secret" {
			c.cfg.JWKS, c.cfg.SecretFile = "", path
		}
		a := opened(t, Config{Ways: []string{"jwt"}, JWT: c.cfg}).(edge.Warden)
		jane, err := ask(a, c.sign(t, claims("jane")))
		if err != nil {
			t.Fatal(name, err)
		}
		rewrite(t, path, "no keys")
		if _, err := a.(*Gate).ways[0].(*jwtWay).file.Look(); err == nil || a.Revalidate(&jane) != nil {
			t.Errorf("%s: a file that can't be read ends what its key opened", name)
		}
		rewrite(t, path, c.second)
		await.True(t, name+" ends it", func() bool { return a.Revalidate(&jane) != nil && a.Version() > 0 })
		refused(t, a.Revalidate(&jane), agora.Unauthorized, "not valid any more")
	}
}
