package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// removes takes away what was written, and returns what is said of that. The configuration that it is given names
// neither the agent nor where the cluster is.
func (m *machine) removes() string {
	m.t.Helper()
	c := m.Config
	c.Agent, c.URL, c.TokenFile, c.Spaces, c.Program = "somebody", "", "", nil, "/elsewhere/agora"
	p, err := Removal(c)
	var b strings.Builder
	if err == nil {
		err = p.Write(&b)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return b.String()
}

func TestNothingIsLeftOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, host := range Hosts() {
		for _, scope := range scopesOf(host) {
			m := newMachine(t, host, scope)
			m.Agent, m.URL, m.TokenFile, m.Spaces = "auto:x y", "wss://a.example.com", "/home/anna/the token", []string{"a", "b"}
			m.writes()
			if said := m.removes(); !strings.Contains(said, " is removed") || strings.Contains(said, "as it was") {
				t.Errorf("%s %s: it says %q", host, scope, said)
			}
			for _, dir := range []string{m.Dir, m.Home} {
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("%s %s: there is still %v in %s, %v", host, scope, left, dir, err)
				}
			}
			if said := m.removes(); strings.Contains(said, " is removed") || !strings.Contains(said, "as it was") {
				t.Errorf("%s %s: the second time it says %q", host, scope, said)
			}
		}
	}
}

func TestWhatIsNotOfAgoraStays(t *testing.T) {
	t.Parallel()
	for _, host := range Hosts() {
		for _, scope := range scopesOf(host) {
			m := newMachine(t, host, scope)
			m.Name, m.Agent = "other", "ben"
			m.writes() // another agent's
			m.Name, m.Agent = "", "anna"
			before := m.everything()
			m.writes()
			m.removes()
			if after := m.everything(); after != before {
				t.Errorf("%s %s: there is\n%s\nand was\n%s", host, scope, after, before)
			}
		}
	}
}

func TestHooksOfTheUserInTheSameGroupStay(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "claude-code", Project)
	m.has(".claude/settings.json", `{"hooks":{"SessionStart":[{"matcher":"startup","hooks":[{"type":"command","command":"date"},{"type":"command","command":"agora inbox --brief --as anna"}]}]},"model":"x"}`)
	m.writes()
	m.removes()
	m.wants(".claude/settings.json", `{
  "hooks": {
    "SessionStart": [
      {
        "matcher": "startup",
        "hooks": [
          {
            "type": "command",
            "command": "date"
          }
        ]
      }
    ]
  },
  "model": "x"
}
`)
}

func TestATableOfTOMLGoesAndAllElseStaysByteForByte(t *testing.T) {
	t.Parallel()
	const before, behind = "# mine\nmodel = 'x' # so\n\n[mcp_servers.b]\ncommand=\"b\"\n\n", "[tools]\nweb = true\n"
	m := newMachine(t, "codex", Project)
	m.has(".codex/config.toml", before+"[mcp_servers.agora]\ncommand = \"agora\"\nargs = [\"mcp\", \"--as\", \"x\"]\n\n[mcp_servers.agora.env]\nA = \"1\"\n\n"+behind)
	m.removes()
	m.wants(".codex/config.toml", before+behind)
	m.has(".codex/config.toml", "mcp_servers = { agora = { command = \"agora\" } }\n")
	if p, err := Removal(m.Config); err != nil || p.Write(&strings.Builder{}) == nil {
		t.Errorf("a table that is none is removed (%v)", err)
	}
}

func TestARuleThatWasChangedStays(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "cursor", Project)
	m.writes()
	m.has(".cursor/rules/agora.mdc", "mine")
	m.removes()
	m.wants(".cursor/rules/agora.mdc", "mine")
	if _, err := os.Stat(filepath.Join(m.Dir, ".cursor/hooks.json")); !os.IsNotExist(err) {
		t.Errorf("hooks: %v", err)
	}
}
