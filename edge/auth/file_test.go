package auth

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

func tokensIn(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenOpensWhatItsLineGrants(t *testing.T) {
	token, line, err := NewToken(Line{Name: "jane", Agents: []string{"Jane Doe", "team-a,b/*"}, Tenant: "acme", Roles: []string{"staff", "ops"}, System: true})
	if err != nil {
		t.Fatal(err)
	}
	other, otherLine, err := NewToken(Line{Name: "joe", Agents: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, token) {
		t.Error("the line shows the token itself")
	}
	auth := opened(t, Config{Ways: []string{"file:" + tokensIn(t, "# who may", "", line, "  "+otherLine+"  ")}})
	p, err := auth.Authenticate(t.Context(), edge.Credentials{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "jane" || p.Tenant != "acme" || !p.System || p.Any || !slices.Equal(p.Agents, []string{"Jane Doe", "team-a,b/*"}) || !slices.Equal(p.Roles, []string{"staff", "ops"}) || p.ID != "jane" {
		t.Errorf("principal = %+v", p)
	}
	p, err = auth.Authenticate(t.Context(), edge.Credentials{Token: other})
	if err != nil || p.Name != "joe" || p.Tenant != agora.DefaultTenant || p.System || !slices.Equal(p.Agents, []string{"*"}) {
		t.Errorf("principal = %+v, %v", p, err)
	}
}

func TestWrongTokenIsUnauthorizedAndNotRepeated(t *testing.T) {
	_, line, err := NewToken(Line{Name: "jane", Agents: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	auth := opened(t, Config{Ways: []string{"file:" + tokensIn(t, line)}})
	for _, token := range []string{"", "guess-of-mine", strings.Repeat("x", 1<<16)} {
		_, err := auth.Authenticate(t.Context(), edge.Credentials{Token: token})
		e, ok := errors.AsType[*agora.Error](err)
		if !ok || e.Code != agora.Unauthorized {
			t.Errorf("error = %v, want UNAUTHORIZED", err)
		}
		if token != "" && strings.Contains(err.Error(), token) {
			t.Error("the error repeats the token")
		}
	}
}

// An edge starts with them nevertheless: they say nothing any more.
func TestIdsThatNoAgentMayHaveAreToldOfATokenFile(t *testing.T) {
	line := func(name, agents string) string {
		return name + " sha256:" + strings.Repeat(name, 64) + " agents=" + agents
	}
	for agents, want := range map[string]bool{"bob": true, "*": true, "bob+*": true, "bot-*": true, "J%C3%B6rg": true, "bob+": false, "+bob": false, "Jo%CC%88rg": false, "Jo%CC%88*": false, "AGORA": false, "agora": false} {
		cfg := Config{Ways: []string{"file:" + tokensIn(t, line("a", "fine"), line("b", agents))}}
		if err := cfg.Check(); (err == nil) != want || !want && !strings.Contains(err.Error(), "b may be ") {
			t.Errorf("%s: %v", agents, err)
		}
		if _, err := TokenFile(strings.TrimPrefix(cfg.Ways[0], "file:")); err != nil {
			t.Errorf("%s: an edge does not start: %v", agents, err)
		}
	}
}

func TestBadTokenFileIsRefusedByLineWithoutQuotingIt(t *testing.T) {
	hash := "sha256:" + strings.Repeat("ab", 32)
	for name, line := range map[string]string{
		"no agents":       "jane " + hash,
		"empty pattern":   "jane " + hash + " agents=a,,b",
		"bad escape":      "jane " + hash + " agents=%zz",
		"short hash":      "jane sha256:abab agents=*",
		"long hash":       "jane " + hash + "ab agents=*",
		"no hash":         "jane secret-token-in-clear agents=*",
		"unknown word":    "jane " + hash + " agents=* admin",
		"empty role":      "jane " + hash + " agents=* roles=a,",
		"empty tenant":    "jane " + hash + " agents=* tenant=",
		"two tenants":     "jane " + hash + " agents=* tenant=acme tenant=other",
		"a tenant twice":  "jane " + hash + " agents=* tenant=acme tenant=acme",
		"name stands two": "joe sha256:" + strings.Repeat("cd", 32) + " agents=*",
		"hash stands two": "jane sha256:" + strings.Repeat("ef", 32) + " agents=*",
	} {
		t.Run(name, func(t *testing.T) {
			first := "joe sha256:" + strings.Repeat("ef", 32) + " agents=*"
			_, err := TokenFile(tokensIn(t, first, line))
			if err == nil || !strings.Contains(err.Error(), "line 2") {
				t.Fatalf("error = %v, want one about line 2", err)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "abab") {
				t.Errorf("error quotes the line: %v", err)
			}
		})
	}
}

func TestNewTokenRefusesWhatTheFileCouldNotHold(t *testing.T) {
	for _, c := range []struct {
		name, tenant string
		agents       []string
	}{{"", "", []string{"*"}}, {"a b", "", []string{"*"}}, {"#a", "", []string{"*"}}, {"a", "", nil}, {"a", "x y", []string{"*"}}} {
		if _, _, err := NewToken(Line{Name: c.name, Agents: c.agents, Tenant: c.tenant}); err == nil {
			t.Errorf("NewToken(%q, %v, %q) made a token", c.name, c.agents, c.tenant)
		}
	}
}

func TestWithoutAuthEverybodyMayBeAnyoneButNotTheSystem(t *testing.T) {
	p, err := None().Authenticate(t.Context(), edge.Credentials{Token: "whatever"})
	if err != nil || !p.Any || p.System || p.Name != "" || p.Tenant != agora.DefaultTenant {
		t.Errorf("principal = %+v, %v", p, err)
	}
}
