package install

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOtherMembersStayInTheirOrder(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "claude-code", Project)
	m.has(".mcp.json", "{\"z\":1.50,\n\t\"mcpServers\":{\"b\":{\"command\":\"b\",\"args\":[]},\"a\":{\"url\":\"http://a?x=1&y=<2>\"}},\"y\":null}")
	m.writes()
	m.wants(".mcp.json", `{
  "z": 1.50,
  "mcpServers": {
    "b": {
      "command": "b",
      "args": []
    },
    "a": {
      "url": "http://a?x=1&y=<2>"
    },
    "agora": {
      "command": "agora",
      "args": [
        "mcp",
        "--as",
        "anna"
      ]
    }
  },
  "y": null
}
`)
}

func TestHooksStandBehindThoseOfTheUser(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "claude-code", Project)
	m.has(".claude/settings.json", `{"hooks":{"Stop":[],"SessionStart":[{"matcher":"startup","hooks":[{"type":"command","command":"date"}]}]}}`)
	m.writes()
	hook := ` [
          {
            "type": "command",
            "command": "agora inbox --brief --as anna",
            "timeout": 5
          }
        ]
      }
    ]`
	m.wants(".claude/settings.json", `{
  "hooks": {
    "Stop": [],
    "SessionStart": [
      {
        "matcher": "startup",
        "hooks": [
          {
            "type": "command",
            "command": "date"
          }
        ]
      },
      {
        "hooks":`+hook+`,
    "UserPromptSubmit": [
      {
        "hooks":`+hook+`
  }
}
`)
}

func TestWhatTheUserHasAddedToAnEntryIsNoDifference(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "gemini", Project)
	m.has(".gemini/settings.json", `{"mcpServers": {"agora": {"trust": true, "args": ["mcp","--as","anna"], "command": "agora"}}, "hooks": {
		"SessionStart": [{"hooks":[{"type":"command","command":"date"},{"type":"command","timeout":1,"command":"agora inbox --brief --as anna | agora mcp context SessionStart"}]}],
		"BeforeAgent": [{"matcher":"*","hooks":[{"type":"command","command":"agora inbox --brief --as anna | agora mcp context BeforeAgent"}]}]}}`)
	before := m.everything()
	if said := m.writes(); !strings.Contains(said, " is as it was") || m.everything() != before {
		t.Errorf("it says %q, and there is\n%s", said, m.everything())
	}
}

func TestFilesThatDoNotTakeTheChangeAreLeftAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, path, text, why string }{
		{"claude-code", ".mcp.json", "{\n  // mine\n  \"mcpServers\": {}\n}", "is not valid JSON"},
		{"claude-code", ".mcp.json", `{"mcpServers": {},}`, "is not valid JSON"},
		{"claude-code", ".mcp.json", `{"mcpServers": {}} {}`, "is not valid JSON"},
		{"claude-code", ".mcp.json", `[]`, "is no JSON object"},
		{"claude-code", ".mcp.json", `{"mcpServers": null}`, "is no JSON object"},
		{"claude-code", ".mcp.json", `{"mcpServers": {}, "mcpServers": {}}`, `has "mcpServers" twice`},
		{"claude-code", ".mcp.json", `{"mcpServers": {"agora": {"command": "other"}}}`, "it has another mcpServers.agora"},
		{"claude-code", ".claude/settings.json", `{"hooks": {"SessionStart": {}}}`, "its hooks.SessionStart is no list"},
		{"cursor", ".cursor/hooks.json", `{"version": 2}`, "it has another version"},
		{"cursor", ".cursor/rules/agora.mdc", "mine", "it has other text"},
		{"codex", ".codex/hooks.json", "hooks:", "is not valid JSON"},
		{"codex", ".codex/config.toml", "model = \n", "is not valid TOML"},
		{"codex", ".codex/config.toml", "[mcp_servers.agora]\ncommand = \"other\"\n", "it has another mcp_servers.agora"},
		{"codex", ".codex/config.toml", "[mcp_servers]\nagora = {command = \"agora\", args = [\"mcp\"]}\n", "it has another mcp_servers.agora"},
		{"codex", ".codex/config.toml", "mcp_servers = {other = {command = \"x\"}}\n", "its mcp_servers is one value"},
		{"gemini", ".gemini/settings.json", strings.Repeat(" ", largest+1), "is larger than"},
	} {
		m := newMachine(t, c.host, Project)
		m.has(c.path, c.text)
		m.refuses(c.why)
	}
}

func TestATableIsAppendedAndAllElseStaysByteForByte(t *testing.T) {
	t.Parallel()
	table := "[mcp_servers.agora]\ncommand = \"agora\"\nargs = [\"mcp\", \"--as\", \"anna\"]\nenv_vars = [\"XDG_RUNTIME_DIR\"]\n"
	for _, c := range []struct{ has, want string }{
		{"", table},
		{"# mine\nmodel   = \"m\" # why", "# mine\nmodel   = \"m\" # why\n\n" + table},
		{"[mcp_servers.other]\ncommand = 'x'\n", "[mcp_servers.other]\ncommand = 'x'\n\n" + table},
		{"text = '''\n[mcp_servers.agora]\n'''\n", "text = '''\n[mcp_servers.agora]\n'''\n\n" + table},
		{"mcp_servers.agora = {command='agora',args=['mcp','--as','anna'],env_vars=['XDG_RUNTIME_DIR'],enabled=true} # mine", "mcp_servers.agora = {command='agora',args=['mcp','--as','anna'],env_vars=['XDG_RUNTIME_DIR'],enabled=true} # mine"},
		{"[mcp_servers.'agora']\nargs = ['mcp', '--as', 'anna']\r\ncommand = 'agora'\nenv_vars = ['XDG_RUNTIME_DIR']\n", "[mcp_servers.'agora']\nargs = ['mcp', '--as', 'anna']\r\ncommand = 'agora'\nenv_vars = ['XDG_RUNTIME_DIR']\n"},
	} {
		m := newMachine(t, "codex", Project)
		m.has(".codex/config.toml", c.has)
		m.writes()
		m.wants(".codex/config.toml", c.want)
	}
}

// Codex hands a server few variables, and a hook all of them: both look for the server's socket in the directory that
// one of them names.
func TestAServerOfCodexHasItsSocketWhereHooksLook(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "codex", Project)
	m.writes()
	table, err := tomlTable{}.servers([]byte(planned(t, m.Config).Files[0].Text()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table["agora"].(map[string]any)["env_vars"], []any{"XDG_RUNTIME_DIR"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the server is handed %v, want %v", got, want)
	}
}

// Whatever a document says, nothing of it is lost, and a second change is none.
func TestNothingOfADocumentIsLost(t *testing.T) {
	t.Parallel()
	c := plain
	c.Host = "gemini"
	change := planned(t, c).Files[0].change
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }))
	value := rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(scalar, 0, 3), func(l []any) any { return l }))
	object := rapid.MapOfN(rapid.StringN(0, 5, 20), value, 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		doc := object.Draw(t, "document")
		doc["mcpServers"] = object.Draw(t, "servers")
		doc["hooks"] = map[string]any{"SessionStart": rapid.SliceOfN(value, 0, 3).Draw(t, "hooks")}
		before, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		after, err := change.apply(before)
		if err != nil {
			t.Fatal(err)
		}
		has := decode(after).(map[string]any)
		hooks := has["hooks"].(map[string]any)
		start := hooks["SessionStart"].([]any)
		hooks["SessionStart"] = start[:len(start)-1]
		if !covers(has, decode(before)) {
			t.Errorf("%s becomes %s", before, after)
		}
		if again, err := change.apply(after); err != nil || string(again) != string(after) {
			t.Errorf("%s becomes %s, %v", after, again, err)
		}
	})
}

func TestAShellReadsWordsAsTheyAre(t *testing.T) {
	t.Parallel()
	words := []string{"printf", `%s\0`, "anna's agent", `a\b "c"`, "*?[x]~#", "a;b|c&d>e<f", "`x`", "!", "", "é"}
	out, err := exec.Command("sh", "-c", shell(slices.Clone(words)...)).Output()
	if want := strings.Join(words[2:], "\x00") + "\x00"; err != nil || string(out) != want {
		t.Errorf("a shell reads %q, %v, want %q", out, err, want)
	}
}

func TestTextBecomesWhatEachEventTakes(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		"SessionStart":       `{"hookSpecificOutput":{"additionalContext":"2 from \"bob\"\nnow","hookEventName":"SessionStart"}}`,
		"BeforeAgent":        `{"hookSpecificOutput":{"additionalContext":"2 from \"bob\"\nnow","hookEventName":"BeforeAgent"}}`,
		"sessionStart":       `{"additional_context":"2 from \"bob\"\nnow"}`,
		"beforeSubmitPrompt": `{"additional_context":"2 from \"bob\"\nnow","continue":true}`,
	} {
		if got, err := Context(event, "2 from \"bob\"\nnow\n"); err != nil || string(got) != want+"\n" {
			t.Errorf("%s: %s, %v, want %s", event, got, err, want)
		}
		if got, err := Context(event, " \n"); err != nil || len(got) > 0 {
			t.Errorf("%s of no text: %q, %v, want nothing", event, got, err)
		}
	}
	if got, err := Context("Stop", "x"); err == nil {
		t.Errorf("an event that is none: %q, want an error", got)
	}
}
