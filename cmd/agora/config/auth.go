package config

import (
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/auth"
)

// authSettings say who may connect.
type authSettings struct {
	choice                  string
	jwks, secretFile        string
	issuer, audience        string
	leeway                  time.Duration
	agentClaim, tenantClaim string
	revoked                 string
	allowReadable           bool
}

// flags defines the flags of a; choice is the default.
func (a *authSettings) flags(f *pflag.FlagSet, choice, help string) {
	f.StringVar(&a.choice, "auth", choice, "who may connect: file:PATH of tokens, jwt, mtls, or several of them with commas; or none: everybody may be any agent"+help)
	f.StringVar(&a.jwks, "auth.jwt.jwks", "", "https URL or file of the keys (JWKS) that sign tokens, for auth jwt")
	f.StringVar(&a.secretFile, "auth.jwt.secret-file", "", "file of the secret that signs tokens (HS256), instead of auth.jwt.jwks")
	f.StringVar(&a.issuer, "auth.jwt.issuer", "", "iss that tokens must have; any if empty")
	f.StringVar(&a.audience, "auth.jwt.audience", "", "aud that tokens must have; needed with auth.jwt.jwks")
	f.DurationVar(&a.leeway, "auth.jwt.leeway", 30*time.Second, "how far clocks may be apart when times of tokens are judged")
	f.StringVar(&a.agentClaim, "auth.jwt.agent-claim", "sub", "claim that names the agent; or, but for sub, lists agents")
	f.StringVar(&a.tenantClaim, "auth.jwt.tenant-claim", "tenant", "claim that names the tenant")
	f.BoolVar(&a.allowReadable, "auth.allow-readable", false, "take files of tokens, keys and other secrets that every user of the machine can read; else agora edge does not start with one, and agora dev warns of it")
	f.StringVar(&a.revoked, "auth.revoked", "", "file of names, token ids, serial numbers and times whose credentials are not taken any more")
}

func (a *authSettings) Config(log *slog.Logger) auth.Config {
	c := auth.Config{
		Revoked: a.revoked, Log: log,
		JWT: auth.JWT{
			JWKS: a.jwks, SecretFile: a.secretFile, Issuer: a.issuer, Audience: a.audience,
			Leeway: a.leeway, AgentClaim: a.agentClaim, TenantClaim: a.tenantClaim,
		},
	}
	for way := range strings.SplitSeq(a.choice, ",") {
		if way = strings.TrimSpace(way); way != "" {
			c.Ways = append(c.Ways, way)
		}
	}
	return c
}

// has reports whether a way in was chosen.
func (a *authSettings) has(way string) bool {
	for _, w := range a.Config(nil).Ways {
		if w == way {
			return true
		}
	}
	return false
}

// faults returns what makes no sense, but for no choice at all.
func (a *authSettings) faults() []error {
	if a.choice == "" {
		return nil
	}
	return []error{a.Config(nil).Faults()}
}

// checkFiles returns what is wrong with the files that are named.
func (a *authSettings) checkFiles() error {
	if a.choice == "" {
		return nil
	}
	return a.Config(nil).Check()
}
