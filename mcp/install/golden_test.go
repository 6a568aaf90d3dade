package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// anna is what a user says who has her own edges, credentials and spaces.
var anna = Config{
	Dir: "/home/anna/myproject", Home: "/home/anna", Program: "agora", Agent: "anna's agent", System: "linux",
	URL: "wss://e1.example.com,wss://e2.example.com", TokenFile: "/home/anna/.agora token", Spaces: []string{"general", "task.review"},
}

// plain is one who says nothing.
var plain = Config{Dir: "/home/anna/myproject", Home: "/home/anna", Program: "/opt/agora/bin/agora", Agent: "auto:host-myproject", System: "linux"}

func TestWhatHostsAreToldIsKnown(t *testing.T) {
	t.Parallel()
	for _, host := range Hosts() {
		for name, c := range map[string]Config{"project": plain, "user": anna} {
			t.Run(host+" "+name, func(t *testing.T) {
				t.Parallel()
				if c.Host, c.Scope = host, Scope(name); !slices.Contains(scopesOf(host), c.Scope) {
					return
				}
				golden(t, host+"-"+name+".txt", printed(t, c))
			})
		}
	}
}

// golden compares what is said with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s (%v) is not what is said; see that it may change, and write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", path, err, got)
	}
}

func planned(t *testing.T, c Config) Plan {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func printed(t *testing.T, c Config) string {
	t.Helper()
	var b strings.Builder
	if err := planned(t, c).Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// scopesOf returns the scopes in which a host is configured.
func scopesOf(host string) []Scope {
	if OfUser(host, "") {
		return []Scope{User}
	}
	return []Scope{Project, User}
}

func TestSettingsLieWhereTheSystemHasThem(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]string{
		"linux": "/home/anna/.config", "darwin": "/home/anna/Library/Application Support", "windows": "/home/anna/AppData/Roaming",
	} {
		c := anna
		c.Scope, c.System = User, system
		for host, file := range map[string]string{"claude-desktop": "Claude/claude_desktop_config.json", "vscode": "Code/User/mcp.json"} {
			c.Host = host
			if got := planned(t, c).Files[0].Path; got != filepath.Join(want, file) {
				t.Errorf("%s on %s: %s, want it in %s", host, system, got, want)
			}
		}
	}
}

func TestHostsWithoutFilesOfAProjectAreConfiguredForTheirUser(t *testing.T) {
	t.Parallel()
	for _, host := range ofUsersAlone {
		c := plain
		c.Host = host
		if at := planned(t, c).Files[0].Path; !strings.HasPrefix(at, c.Home) || strings.HasPrefix(at, c.Dir) {
			t.Errorf("%s is configured by %s", host, at)
		}
		c.Scope = Project
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "--scope user") {
			t.Errorf("for a project: %v", err)
		}
	}
}

func TestHomesOfHostsMayBeElsewhere(t *testing.T) {
	t.Parallel()
	c := anna
	c.Scope, c.Getenv = User, func(name string) string {
		return map[string]string{"CODEX_HOME": "/srv/codex", "CLAUDE_CONFIG_DIR": "/srv/claude", "XDG_CONFIG_HOME": "/srv/config"}[name]
	}
	for host, want := range map[string][]string{
		"codex":       {"/srv/codex/config.toml", "/srv/codex/hooks.json"},
		"claude-code": {"/srv/claude/.claude.json", "/srv/claude/settings.json"},
		"opencode":    {"/srv/config/opencode/opencode.json", "/srv/config/opencode/agora.md"},
	} {
		c.Host = host
		for k, f := range planned(t, c).Files {
			if f.Path != want[k] {
				t.Errorf("file %d of %s is %s, want %s", k, host, f.Path, want[k])
			}
		}
	}
}

func TestWhatAHostWouldNotHandOnIsRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		`no host is called "emacs"`:    func(c *Config) { c.Host = "emacs" },
		`no scope is called "machine"`: func(c *Config) { c.Scope = "machine" },
		`can't be called "a b"`:        func(c *Config) { c.Name = "a b" },
		"variable of the environment":  func(c *Config) { c.URL = "ws://$HOST" },
		"has a control character":      func(c *Config) { c.Spaces = []string{"a\nb"} },
		"longer than 4096 bytes":       func(c *Config) { c.Agent = strings.Repeat("a", 5000) },
		"must be absolute":             func(c *Config) { c.TokenFile = "token" },
		"program and agent must be":    func(c *Config) { c.Agent = "" },
	} {
		c := plain
		c.Host = "codex"
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
