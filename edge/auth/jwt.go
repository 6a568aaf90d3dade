package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/reload"
)

// JWT says which signed tokens are taken.
type JWT struct {
	JWKS        string        // URL or file of the keys; or
	SecretFile  string        // file of a secret of at least 32 bytes, for HS256
	Issuer      string        // iss that tokens must have; any if empty
	Audience    string        // aud that tokens must have; required with JWKS
	Leeway      time.Duration // between clocks
	AgentClaim  string        // claim that names the agent; sub
	TenantClaim string        // claim that names the tenant; tenant

	fetching fetching // of keys at a URL; as usual but in tests
}

// given reports whether anything was said of tokens that has no default.
func (j JWT) given() bool { return j.JWKS+j.SecretFile+j.Issuer+j.Audience != "" }

func (j JWT) faults() error {
	var errs []error
	if (j.JWKS == "") == (j.SecretFile == "") {
		errs = append(errs, errors.New("auth jwt needs either auth.jwt.jwks or auth.jwt.secret-file"))
	}
	if j.JWKS != "" && j.Audience == "" {
		errs = append(errs, errors.New("auth.jwt.jwks needs auth.jwt.audience: whoever signs may sign for others, too"))
	}
	if u, err := url.Parse(j.JWKS); isURL(j.JWKS) && (err != nil || u.Hostname() == "" || u.Scheme == "http" && !isLoopback(u.Hostname())) {
		errs = append(errs, errors.New("auth.jwt.jwks must be a file or begin with https://, but for addresses of this machine"))
	}
	if j.Leeway < 0 || j.Leeway > 10*time.Minute {
		errs = append(errs, errors.New("auth.jwt.leeway must be 0 to 10m"))
	}
	return errors.Join(errs...)
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// jwtWay is the way in by signed tokens.
type jwtWay struct {
	cfg    JWT
	file   *reload.File[keys] // or
	remote *remoteKeys
}

func newJWT(cfg JWT, log *slog.Logger) (*jwtWay, error) {
	cfg.AgentClaim, cfg.TenantClaim = cmp.Or(cfg.AgentClaim, "sub"), cmp.Or(cfg.TenantClaim, "tenant")
	w := &jwtWay{cfg: cfg}
	var err error
	switch {
	case cfg.SecretFile != "":
		w.file, err = reload.Open(cfg.SecretFile, secretKeys)
	case isURL(cfg.JWKS):
		w.remote = newRemoteKeys(cfg.JWKS, cfg.fetching, log)
	default:
		w.file, err = reload.Open(cfg.JWKS, parseKeys)
	}
	return w, err
}

// knows reports whether the token looks like a signed one: three parts, the first a JSON object.
func (w *jwtWay) knows(c edge.Credentials) bool {
	return strings.Count(c.Token, ".") == 2 && strings.HasPrefix(c.Token, "ey")
}

// algorithms are those that a key may be for. A key is for one of them alone,
// so what a token says of itself never decides how it is verified.
var algorithms = []jose.SignatureAlgorithm{jose.HS256, jose.RS256, jose.ES256, jose.EdDSA}

func (w *jwtWay) authenticate(ctx context.Context, c edge.Credentials) (edge.Principal, error) {
	if strings.ContainsFunc(c.Token, unicode.IsSpace) { // the library would pass over it
		return edge.Principal{}, errInvalid
	}
	token, err := jwt.ParseSigned(c.Token, algorithms)
	if err != nil || len(token.Headers) != 1 {
		return edge.Principal{}, refuse("the token is not valid", err)
	}
	var claims jwt.Claims
	var others map[string]json.RawMessage
	k, err := w.verify(ctx, token, &claims, &others)
	if err != nil {
		return edge.Principal{}, err
	}
	if err := w.timely(claims); err != nil {
		return edge.Principal{}, err
	}
	p, err := w.principal(claims, others)
	p.Source = k.source
	return p, err
}

// verify reads the claims of a token that one of the keys has signed, and returns which.
func (w *jwtWay) verify(ctx context.Context, token *jwt.JSONWebToken, claims ...any) (key, error) {
	head := token.Headers[0]
	var candidates []key
	if w.remote != nil {
		var err error
		if candidates, err = w.remote.find(ctx, head.KeyID, head.Algorithm); err != nil {
			return key{}, err
		}
	} else {
		candidates = w.file.Get().find(head.KeyID, head.Algorithm)
	}
	if len(candidates) == 0 {
		return key{}, refuse("the token is signed by a key that is not known here", nil)
	}
	var err error
	for _, k := range candidates {
		if err = token.Claims(k.material, claims...); err == nil {
			return k, nil
		}
	}
	return key{}, refuse("the token is not valid", err)
}

// timely checks whom and when the token is for.
func (w *jwtWay) timely(c jwt.Claims) error {
	want := jwt.Expected{Issuer: w.cfg.Issuer}
	if w.cfg.Audience != "" {
		want.AnyAudience = jwt.Audience{w.cfg.Audience}
	}
	switch err := c.ValidateWithLeeway(want, w.cfg.Leeway); {
	case c.Expiry == nil:
		return refuse("the token has no exp", nil)
	case errors.Is(err, jwt.ErrExpired):
		return refuse("the token has expired", nil)
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return refuse("the token is not valid yet", nil)
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return refuse("the token is from another issuer", nil)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return refuse("the token is for another audience", nil)
	case err != nil:
		return refuse("the token is not valid", err)
	}
	return nil
}

// farthest is the last moment, in Unix seconds, at which the edge takes credentials to end. Dates of JSON have four
// digits for the year.
const farthest = 253370764800 // 9999-01-01

// principal returns who the claims name. Of sub, and of any claim that is one
// string, that is one id and never a pattern; a list may have patterns.
func (w *jwtWay) principal(c jwt.Claims, others map[string]json.RawMessage) (edge.Principal, error) {
	p := edge.Principal{Name: c.Subject, ID: c.ID, Tenant: agora.DefaultTenant}
	p.Expires = time.Unix(min(c.Expiry.Time().Unix(), farthest), 0).Add(w.cfg.Leeway)
	if c.IssuedAt != nil {
		p.Issued = c.IssuedAt.Time()
	}
	var one string
	switch claim := others[w.cfg.AgentClaim]; {
	case json.Unmarshal(claim, &one) == nil && literal(one):
		p.Agents = []string{one}
		p.Name = cmp.Or(p.Name, one)
	case w.cfg.AgentClaim != "sub" && json.Unmarshal(claim, &p.Agents) == nil && len(p.Agents) > 0 && !slices.Contains(p.Agents, ""):
	default:
		return edge.Principal{}, refuse("the token's claim %q names no agent", nil, w.cfg.AgentClaim)
	}
	if p.Name == "" {
		return edge.Principal{}, refuse("the token has no sub", nil)
	}
	if claim, ok := others[w.cfg.TenantClaim]; ok && (string(claim) == "null" || json.Unmarshal(claim, &p.Tenant) != nil || !tenantName(p.Tenant)) {
		return edge.Principal{}, refuse("the token's claim %q names no tenant", nil, w.cfg.TenantClaim)
	}
	if claim, ok := others["roles"]; ok && json.Unmarshal(claim, &p.Roles) != nil {
		return edge.Principal{}, refuse("the token's claim roles is no list of strings", nil)
	}
	if claim, ok := others["agora"]; ok {
		scope, err := policy.ParseScope(claim)
		if err != nil {
			return edge.Principal{}, refuse("the token's claim agora says nothing of permissions", err)
		}
		p.Scope = scope
	}
	return p, nil
}

// tenantName reports whether a tenant may be called so.
func tenantName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= agora.MaxIDLength && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// refuse returns the error for an agent; the cause is for the log.
func refuse(text string, cause error, args ...any) error {
	e := agora.Errorf(agora.Unauthorized, text, args...)
	e.Cause = cause
	return e
}

// standing is about the key alone: a set that can't be fetched takes none away.
func (w *jwtWay) standing(p *edge.Principal) error {
	if w.remote != nil {
		return w.remote.standing(p)
	}
	return w.file.Get().standing(p)
}

func (w *jwtWay) sources() []reload.Source {
	if w.file == nil {
		return nil
	}
	return []reload.Source{w.file}
}
