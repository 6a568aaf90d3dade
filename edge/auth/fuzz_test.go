package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// keyed returns a way in for tokens that a key has signed, and the key.
func keyed(f *testing.F) (*jwtWay, ed25519.PrivateKey) {
	f.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k"}}})
	path := filepath.Join(f.TempDir(), "keys")
	if err == nil {
		err = os.WriteFile(path, set, 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
	way, err := Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: path, Audience: "agora"}}.way("jwt")
	if err != nil {
		f.Fatal(err)
	}
	return way.(*jwtWay), key
}

// FuzzToken presents what strangers may present: nothing that the key has not signed is let in, and the refusal says
// only that.
func FuzzToken(f *testing.F) {
	way, key := keyed(f)
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		f.Fatal(err)
	}
	good, err := jwt.Signed(signing).Claims(map[string]any{"sub": "amy", "aud": "agora", "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		f.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for _, token := range []string{
		"", "a.b.c", "..", good + "x", good[:len(good)-10] + "AAAAAAAAAA", b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(`{"sub":"amy"}`)) + ".",
		b64([]byte(`{"alg":"HS256","kid":"k"}`)) + "." + b64([]byte(`{"sub":"amy","exp":9999999999}`)) + ".AAAA",
		b64([]byte(`{"alg":"EdDSA","kid":"k","crit":["b64"],"b64":false}`)) + ".x.AAAA", b64([]byte(`{"alg":"EdDSA","jwk":{}}`)) + ".e30.AAAA", " " + good,
	} {
		f.Add(token)
	}
	if _, err := way.authenticate(context.Background(), edge.Credentials{Token: good}); err != nil {
		f.Fatalf("a good token: %v", err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, err := way.authenticate(t.Context(), edge.Credentials{Token: token})
		if err == nil {
			if own, bad := jwt.ParseSigned(token, algorithms); bad != nil || own.UnsafeClaimsWithoutVerification(new(jwt.Claims)) != nil || p.Name != "amy" {
				t.Fatalf("%q is let in as %+v", token, p)
			}
			return
		}
		if e := agora.AsError(err); e.Code != agora.Unauthorized || e.Message == "" {
			t.Fatalf("%q is refused with %v", token, err)
		}
	})
}

// FuzzClaims reads the claims of a token that was signed: whom it names is somebody of one tenant, by ids that are not
// empty.
func FuzzClaims(f *testing.F) {
	way, _ := keyed(f)
	for _, claims := range []string{
		`{"sub":"amy"}`, `{"sub":"amy/*"}`, `{"sub":"","agents":["a"]}`, `{"sub":"x","agora":{"send":["b"]}}`, `{"sub":"x","agora":null}`, `{"sub":"x","tenant":"acme"}`, `{"sub":"x","tenant":""}`,
		`{"sub":"x","tenant":7}`, `{"sub":"x","roles":["a",1]}`, `{"sub":["a"]}`, `{"sub":"a\u0000b"}`, `{"sub":null}`, `{"sub":"x","tenant":"\u202e"}`, `{"sub":"x","jti":5}`, `{}`, `[]`,
	} {
		f.Add([]byte(claims))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c jwt.Claims
		var others map[string]json.RawMessage
		if json.Unmarshal(b, &c) != nil || json.Unmarshal(b, &others) != nil {
			return // the library refuses it
		}
		c.Expiry = jwt.NewNumericDate(time.Now().Add(time.Hour))
		p, err := way.principal(c, others)
		if err != nil {
			if e := agora.AsError(err); e.Code != agora.Unauthorized {
				t.Fatalf("%q is refused with %v", b, err)
			}
			return
		}
		if p.Name == "" || p.Any || len(p.Agents) == 0 || slices.Contains(p.Agents, "") || !tenantName(p.Tenant) {
			t.Fatalf("%q is %+v", b, p)
		}
	})
}
