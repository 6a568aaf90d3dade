package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSettingsOfCredentialsAndListenersThatMakeNoSenseAreTold(t *testing.T) {
	for text, args := range map[string][]string{
		"auth must be given":                   {},
		"nothing can stand beside it":          {"--auth", "none,file:tokens"},
		"auth is none, or a list of":           {"--auth", "file:tokens,open"},
		"needs either auth.jwt.jwks":           {"--auth", "jwt"},
		"auth.jwt.jwks needs auth.jwt.audienc": {"--auth", "jwt", "--auth.jwt.jwks", "keys.json"},
		"or begin with https://":               {"--auth", "jwt", "--auth.jwt.jwks", "http://id.example.com/keys", "--auth.jwt.audience", "a"},
		"auth mtls needs tls.cert":             {"--auth", "mtls", "--tls.cert", "c", "--tls.key", "k"},
		"tls.cert and tls.key go together":     {"--auth", "none", "--tls.cert", "c"},
		"admin.tls.client-ca needs":            {"--auth", "none", "--admin.tls.client-ca", "c"},
		"server.max-header must be":            {"--auth", "none", "--server.max-header", "1KiB"},
		"server.read-header-timeout must":      {"--auth", "none", "--server.read-header-timeout", "0s"},
	} {
		f := pflag.NewFlagSet("edge", pflag.ContinueOnError)
		var o Edge
		o.Flags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %q", args, err, text)
		}
	}
}
