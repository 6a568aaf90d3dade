package install

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
)

// hosts has what configures each of them.
var hosts = map[string]func(Config) Plan{
	"claude-code":    claudeCode,
	"claude-desktop": claudeDesktop,
	"codex":          codex,
	"cursor":         cursor,
	"gemini":         gemini,
	"opencode":       openCode,
	"vscode":         vsCode,
	"windsurf":       windsurf,
}

// ofUsersAlone are the hosts that read no files of a project.
var ofUsersAlone = []string{"claude-desktop", "windsurf"}

// Hosts returns the names of the hosts that can be configured, sorted.
func Hosts() []string { return slices.Sorted(maps.Keys(hosts)) }

// hookSeconds is how long a host waits for a hook, far more than one takes.
const hookSeconds = 5

const (
	serverEntry = "the MCP server"
	hookEntries = "hooks that tell the model what waits for it"
	startHook   = "a hook that tells the model at the start of a session what waits for it"
	ruleEntry   = "a rule that has the model look into its mailbox"
)

// server is how hosts describe an MCP server in JSON.
type server struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func (c Config) serverEdit() edit {
	return edit{path: []string{"mcpServers", c.Name}, value: server{Command: c.Program, Args: c.serverArgs()}}
}

// matcherHook is a hook of hosts that group hooks by what they match. Without a matcher it matches everything.
type matcherHook struct {
	Hooks []commandHook `json:"hooks"`
}

type commandHook struct {
	Type    string `json:"type"`
	Name    string `json:"name,omitempty"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // in the host's unit
}

// hookEdit adds a command to the hooks of an event.
func hookEdit(event string, h commandHook) edit {
	h.Type = "command"
	return edit{path: []string{"hooks", event}, value: matcherHook{[]commandHook{h}}, command: h.Command}
}

func claudeCode(c Config) Plan {
	own := c.Getenv("CLAUDE_CONFIG_DIR")
	at, settings := filepath.Join(cmp.Or(own, c.Home), ".claude.json"), filepath.Join(cmp.Or(own, filepath.Join(c.Home, ".claude")), "settings.json")
	run := shell(append([]string{"claude", "mcp", "add", "--scope", "user", c.Name, "--", c.Program}, c.serverArgs()...)...)
	p := Plan{}
	if c.Scope == Project {
		at, settings, run = filepath.Join(c.Dir, ".mcp.json"), filepath.Join(c.Dir, ".claude", "settings.json"), ""
		p.Notes = []string{"Claude Code asks once whether it may start the servers of .mcp.json."}
	}
	h := commandHook{Command: c.hookCommand(), Timeout: hookSeconds}
	p.Files = []File{
		{Path: at, What: serverEntry, Command: run, change: jsonEdits{c.serverEdit()}},
		{Path: settings, What: hookEntries, change: jsonEdits{hookEdit("SessionStart", h), hookEdit("UserPromptSubmit", h)}},
	}
	return p
}

func codex(c Config) Plan {
	home := cmp.Or(c.Getenv("CODEX_HOME"), filepath.Join(c.Home, ".codex"))
	p := Plan{Notes: []string{"Codex runs a hook once you have trusted it: /hooks shows them."}}
	if c.Scope == Project {
		home = filepath.Join(c.Dir, ".codex")
		p.Notes = append(p.Notes, "Codex reads .codex of a project that you have trusted.")
	}
	h := commandHook{Command: c.hookCommand(), Timeout: hookSeconds}
	p.Files = []File{
		{Path: filepath.Join(home, "config.toml"), What: serverEntry, change: tomlTable{c.Name, server{Command: c.Program, Args: c.serverArgs()}}},
		{Path: filepath.Join(home, "hooks.json"), What: hookEntries, change: jsonEdits{hookEdit("SessionStart", h), hookEdit("UserPromptSubmit", h)}},
	}
	return p
}

func gemini(c Config) Plan {
	p, home := Plan{Notes: []string{"Gemini CLI starts MCP servers, those of a user too, in no folder but those that you have trusted."}}, c.Home
	if c.Scope == Project {
		home = c.Dir
	}
	edits := jsonEdits{c.serverEdit()}
	for _, event := range []string{"SessionStart", "BeforeAgent"} {
		edits = append(edits, hookEdit(event, commandHook{Name: c.Name, Command: c.hookCommandAs(event), Timeout: hookSeconds * 1000}))
	}
	p.Files = []File{{Path: filepath.Join(home, ".gemini", "settings.json"), What: serverEntry + ", and " + hookEntries, change: edits}}
	return p
}
