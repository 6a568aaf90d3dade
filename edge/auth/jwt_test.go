package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// signer signs tokens with a key of its own.
type signer struct {
	id        string
	algorithm jose.SignatureAlgorithm
	key       any // the private one, or the secret
}

func newSigner(t *testing.T) signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{"key-1", jose.EdDSA, key}
}

// set returns the public keys of signers as they are published.
func (s signer) set(t *testing.T, others ...signer) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, one := range append([]signer{s}, others...) {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: one.key.(crypto.Signer).Public(), KeyID: one.id})
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s signer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	opts := (&jose.SignerOptions{}).WithType("JWT")
	if s.id != "" {
		opts = opts.WithHeader("kid", s.id)
	}
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, signing, claims)
}

// claims are those of a good token, and more, in pairs of name and value.
func claims(sub string, more ...any) map[string]any {
	c := map[string]any{"sub": sub, "aud": "agora", "iss": "https://id.example.com", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i+1 < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}

func signers(t *testing.T) map[string]signer {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed := newSigner(t)
	ed.id = "ed"
	return map[string]signer{"RS256": {"rs", jose.RS256, r}, "ES256": {"es", jose.ES256, e}, "EdDSA": ed}
}

func TestSignedTokensOfEveryAlgorithmSayWhoSomeoneIs(t *testing.T) {
	all := signers(t)
	set := all["RS256"].set(t, all["ES256"], all["EdDSA"])
	a := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: wrote(t, set), Audience: "agora", Issuer: "https://id.example.com"}})
	secret := strings.Repeat("s", leastSecret)
	all["HS256"] = signer{"", jose.HS256, []byte(secret)}
	h := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{SecretFile: wrote(t, secret+"\n")}})
	for name, s := range all {
		asked := a
		if name == "HS256" {
			asked = h
		}
		c := claims("agent one", "tenant", "acme", "roles", []string{"ops"}, "jti", "7", "aud", []string{"x", "agora"})
		p, err := ask(asked, s.sign(t, c))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Name != "agent one" || p.Tenant != "acme" || p.ID != "7" || p.Any || p.System ||
			!slices.Equal(p.Agents, []string{"agent one"}) || !slices.Equal(p.Roles, []string{"ops"}) ||
			p.Expires.Unix() != c["exp"] || p.Issued.Unix() != c["iat"] {
			t.Errorf("%s: principal = %+v", name, p)
		}
		if p.Scope != nil {
			t.Errorf("%s: a token that says nothing of permissions has %+v", name, p.Scope)
		}
		c["agora"] = map[string]any{"send": []string{"help*"}}
		if p, err := ask(asked, s.sign(t, c)); err != nil || p.Scope == nil {
			t.Errorf("%s: with permissions: %+v, %v", name, p, err)
		}
		delete(c, "agora")
		s.id = "" // who names no key is verified by those of its algorithm
		if _, err := ask(asked, s.sign(t, c)); err != nil {
			t.Errorf("%s without kid: %v", name, err)
		}
	}
}

func TestAnotherClaimMayNameTheAgents(t *testing.T) {
	s := newSigner(t)
	a := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: wrote(t, s.set(t)), Audience: "agora", AgentClaim: "agents", TenantClaim: "org"}})
	p, err := ask(a, s.sign(t, claims("jane", "agents", []string{"jane", "jane/*"}, "org", "acme", "tenant", "other")))
	if err != nil || p.Name != "jane" || p.Tenant != "acme" || !p.May("jane/laptop") || p.May("joe") {
		t.Errorf("principal = %+v, %v", p, err)
	}
	p, err = ask(a, s.sign(t, claims("jane", "agents", "bot")))
	if err != nil || !p.May("bot") || p.May("jane") {
		t.Errorf("principal = %+v, %v", p, err)
	}
}

func TestATokenMayEndAsLateAsItLikes(t *testing.T) {
	s := newSigner(t)
	a := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: wrote(t, s.set(t)), Audience: "agora", Leeway: time.Minute}})
	for _, exp := range []int64{4102444800, 253402300799, 253402300800, 1 << 52} {
		c := claims("jane")
		c["exp"] = exp
		p, err := ask(a, s.sign(t, c))
		if err != nil || !p.Expires.After(time.Now()) {
			t.Errorf("one that ends at %d: %v, %v", exp, p.Expires, err)
		}
		if _, err := json.Marshal(p.Expires); err != nil { // sessions that others vouch for have it
			t.Error(err)
		}
	}
}

// TestForgedTokensAreRefused tries what attackers try.
func TestForgedTokensAreRefused(t *testing.T) {
	all := signers(t)
	rs, other := all["RS256"], newSigner(t)
	good := rs.sign(t, claims("jane"))
	a := opened(t, Config{Ways: []string{"jwt"}, JWT: JWT{
		JWKS: wrote(t, rs.set(t, all["ES256"])), Audience: "agora", Issuer: "https://id.example.com", Leeway: 5 * time.Second,
	}})
	if _, err := ask(a, good); err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(rs.key.(crypto.Signer).Public())
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	now := time.Now()
	parts := strings.Split(good, ".")
	for about, c := range map[string]struct{ token, want string }{
		"no algorithm":                   {unsigned("none", claims("jane")), "not valid"},
		"no algorithm, other spelling":   {unsigned("nOnE", claims("jane")), "not valid"},
		"no signature":                   {parts[0] + "." + parts[1] + ".", "not valid"},
		"other claims":                   {parts[0] + "." + part(claims("joe")) + "." + parts[2], "not valid"},
		"public key as a secret":         {signer{"rs", jose.HS256, pemKey}.sign(t, claims("jane")), "not known"},
		"public key's bytes as a secret": {signer{"rs", jose.HS256, public}.sign(t, claims("jane")), "not known"},
		"other key of that name":         {signer{"es", jose.EdDSA, other.key}.sign(t, claims("jane")), "not known"},
		"PS256 with the RSA key":         {signer{"rs", jose.PS256, rs.key}.sign(t, claims("jane")), "not valid"},
		"RS512 with the RSA key":         {signer{"rs", jose.RS512, rs.key}.sign(t, claims("jane")), "not valid"},
		"the RSA key under another kid":  {signer{"es", jose.RS256, rs.key}.sign(t, claims("jane")), "not known"},
		"kid is a path":                  {signer{"../../../../dev/null", jose.EdDSA, other.key}.sign(t, claims("jane")), "not known"},
		"kid is a query":                 {signer{"x' UNION SELECT 'k", jose.EdDSA, other.key}.sign(t, claims("jane")), "not known"},
		"kid is a URL":                   {signer{"http://127.0.0.1:1/k", jose.EdDSA, other.key}.sign(t, claims("jane")), "not known"},
		"the token brings its key":       {embedded(t, other, claims("jane")), "not known"},
		"expired":                        {rs.sign(t, claims("jane", "exp", now.Add(-time.Minute).Unix())), "expired"},
		"never expires":                  {rs.sign(t, claims("jane", "exp", nil)), "no exp"},
		"expires far too late":           {rs.sign(t, claims("jane", "exp", 1e300)), "not valid"},
		"expiry is text":                 {rs.sign(t, claims("jane", "exp", "never")), "not valid"},
		"not yet":                        {rs.sign(t, claims("jane", "nbf", now.Add(time.Minute).Unix())), "not valid yet"},
		"made in the future":             {rs.sign(t, claims("jane", "iat", now.Add(time.Minute).Unix())), "not valid yet"},
		"another issuer":                 {rs.sign(t, claims("jane", "iss", "https://id.example.com.evil")), "another issuer"},
		"no issuer":                      {rs.sign(t, claims("jane", "iss", nil)), "another issuer"},
		"another audience":               {rs.sign(t, claims("jane", "aud", "shop")), "another audience"},
		"no audience":                    {rs.sign(t, claims("jane", "aud", nil)), "not valid"},
		"no agent":                       {rs.sign(t, claims("")), "names no agent"},
		"a pattern as agent":             {rs.sign(t, claims("*")), "names no agent"},
		"a pattern at the end":           {rs.sign(t, claims("jane*")), "names no agent"},
		"a list as sub":                  {rs.sign(t, claims("x", "sub", []string{"*"})), "not valid"},
		"an unprintable agent":           {rs.sign(t, claims("ja\x00ne")), "names no agent"},
		"an endless agent":               {rs.sign(t, claims(strings.Repeat("a", 200))), "names no agent"},
		"a tenant that is a number":      {rs.sign(t, claims("jane", "tenant", 7)), "names no tenant"},
		"an empty tenant":                {rs.sign(t, claims("jane", "tenant", "")), "names no tenant"},
		"two tenants":                    {rs.sign(t, claims("jane", "tenant", []string{"acme", "other"})), "names no tenant"},
		"a list of one tenant":           {rs.sign(t, claims("jane", "tenant", []string{"acme"})), "names no tenant"},
		"a tenant that is null":          {rs.sign(t, claims("jane", "tenant", json.RawMessage("null"))), "names no tenant"},
		"permissions nobody knows":       {rs.sign(t, claims("jane", "agora", map[string]any{"sned": []string{"*"}})), "agora"},
		"permissions in text":            {rs.sign(t, claims("jane", "agora", "all")), "agora"},
		"roles that are text":            {rs.sign(t, claims("jane", "roles", "admin")), "roles"},
		"claims that stand twice":        {twice(t, rs), "not valid"},
		"a critical extension":           {critical(t, rs), "not valid"},
		"JSON in place of three parts":   {"eyJ.{}." + parts[2], "not valid"},
		"white space in between":         {parts[0] + "\n." + parts[1] + "." + parts[2], "not valid"},
	} {
		p, err := ask(a, c.token)
		if err == nil {
			t.Errorf("%s: let in as %+v", about, p)
			continue
		}
		refused(t, err, agora.Unauthorized, c.want)
		if t.Failed() {
			t.Fatalf("at: %s", about)
		}
		if strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the error repeats the token", about)
		}
	}
}

func part(v any) string {
	b, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b)
}

func unsigned(algorithm string, claims map[string]any) string {
	return part(map[string]string{"alg": algorithm, "typ": "JWT"}) + "." + part(claims) + "."
}

// embedded returns a token that says itself which key is to verify it.
func embedded(t *testing.T, s signer, claims map[string]any) string {
	t.Helper()
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, (&jose.SignerOptions{EmbedJWK: true}).WithHeader("jku", "http://127.0.0.1:1/keys"))
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, signing, claims)
}

// critical returns a good token with an extension that the one who does not know it must refuse.
func critical(t *testing.T, s signer) string {
	t.Helper()
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, (&jose.SignerOptions{}).WithHeader("crit", []string{"x"}).WithHeader("x", 1))
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, signing, claims("jane"))
}

func compact(t *testing.T, signing jose.Signer, claims map[string]any) string {
	t.Helper()
	b, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return raw(t, signing, b)
}

// raw signs claims as they stand.
func raw(t *testing.T, signing jose.Signer, claims []byte) string {
	t.Helper()
	signed, err := signing.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// twice returns a token with a claim that stands in it twice, as no two readers agree on which one counts.
func twice(t *testing.T, s signer) string {
	t.Helper()
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw(t, signing, fmt.Appendf(nil, `{"sub":"joe","sub":"jane","aud":"agora","iss":"https://id.example.com","exp":%d}`, time.Now().Add(time.Hour).Unix()))
}

func TestWeakKeysAreNotTaken(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err == nil {
		if _, err := parseKeys([]byte(signer{"weak", jose.RS256, weak}.set(t))); err == nil {
			t.Error("a set of a 1024-bit key is taken")
		}
	}
	if _, err := secretKeys([]byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: newSigner(t).key}, {Key: []byte(strings.Repeat("s", 32))}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseKeys(private); err == nil {
		t.Error("a set of a private key and a secret is taken")
	}
}

// publisher serves a set of keys, or fails.
type publisher struct {
	*httptest.Server
	set  atomic.Pointer[string] // nil: it fails
	asks atomic.Int64
	held sync.RWMutex // it does not answer while this is locked
}

// tokens are those that are verified with the set.
func (p *publisher) tokens(retry time.Duration) Config {
	return Config{Ways: []string{"jwt"}, JWT: JWT{JWKS: p.URL, Audience: "agora", fetching: fetching{retry: retry, timeout: await.Long}}}
}

const soonAgain = 50 * time.Millisecond // between two fetches

func publish(t *testing.T, set string) *publisher {
	t.Helper()
	p := new(publisher)
	if set != "" {
		p.set.Store(&set)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asks.Add(1)
		p.held.RLock()
		defer p.held.RUnlock()
		if set := p.set.Load(); set != nil {
			fmt.Fprint(w, *set)
			return
		}
		http.Error(w, "away", http.StatusBadGateway)
	}))
	t.Cleanup(p.Close)
	return p
}

func TestKeysThatAreAwayLockNobodyOutForGoodAndLetNobodyIn(t *testing.T) {
	t.Parallel()
	before, now, forger := newSigner(t), newSigner(t), newSigner(t)
	now.id, forger.id = "key-2", "key-2"
	p := publish(t, "") // away as the edge starts
	a := opened(t, p.tokens(soonAgain))
	_, err := ask(a, before.sign(t, claims("jane")))
	refused(t, err, agora.Unavailable, "can't be fetched now")
	set := before.set(t)
	p.set.Store(&set)
	await.True(t, "the keys are there", func() bool { _, err := ask(a, before.sign(t, claims("jane"))); return err == nil })

	p.set.Store(nil) // away while keys are replaced
	_, err = ask(a, now.sign(t, claims("joe")))
	refused(t, err, agora.Unavailable, "can't be fetched now")
	if _, err := ask(a, before.sign(t, claims("jane"))); err != nil {
		t.Errorf("whoever has a key that is known is locked out: %v", err)
	}
	rotated := now.set(t)
	p.set.Store(&rotated)
	await.True(t, "the new key is there", func() bool { _, err := ask(a, now.sign(t, claims("joe"))); return err == nil })
	_, err = ask(a, forger.sign(t, claims("joe")))
	refused(t, err, agora.Unauthorized, "not valid")
	_, err = ask(a, before.sign(t, claims("jane")))
	refused(t, err, agora.Unauthorized, "not known")
	empty := `{"keys":[]}`
	p.set.Store(&empty)
	_, err = ask(a, before.sign(t, claims("jane"))) // has the set fetched
	refused(t, err, agora.Unavailable, "can't be fetched now")
	if _, err := ask(a, now.sign(t, claims("joe"))); err != nil {
		t.Errorf("an empty set takes back the keys that are known: %v", err)
	}
}

func TestManyUnknownKeysHaveTheSetFetchedRarely(t *testing.T) {
	t.Parallel()
	s, forger := newSigner(t), newSigner(t)
	p := publish(t, s.set(t))
	const retry = time.Second
	begin, asked := time.Now(), make(chan error)
	a := opened(t, p.tokens(retry))
	for i := range 50 {
		forger.id = fmt.Sprint("forged-", i)
		token := forger.sign(t, claims("jane"))
		go func() { _, err := ask(a, token); asked <- err }()
	}
	for range 50 {
		refused(t, <-asked, agora.Unauthorized, "not known")
	}
	asks := p.asks.Load()
	if most := 1 + int64(time.Since(begin)/retry); asks > most {
		t.Errorf("the set was fetched %d times in %v, want %d at most", asks, time.Since(begin), most)
	}
}

func TestNoMoreThanSomeWaitForKeysAtATime(t *testing.T) {
	t.Parallel()
	s, forger := newSigner(t), newSigner(t)
	forger.id = "forged"
	token := forger.sign(t, claims("jane"))
	p := publish(t, s.set(t))
	a := opened(t, p.tokens(soonAgain))
	p.held.Lock()
	held := sync.OnceFunc(p.held.Unlock)
	defer held()
	const all = 2 * mostWaiting
	answers := make(chan error)
	for range all {
		go func() { _, err := ask(a, token); answers <- err }()
	}
	for range all - mostWaiting {
		refused(t, <-answers, agora.Unavailable, "too many")
	}
	if _, err := ask(a, s.sign(t, claims("jane"))); err != nil {
		t.Errorf("a good token meanwhile: %v", err)
	}
	held()
	for range mostWaiting {
		refused(t, <-answers, agora.Unauthorized, "not known")
	}
}
