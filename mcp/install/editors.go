package install

import (
	"cmp"
	"path/filepath"
	"runtime"
)

// settingsHome returns the directory in which programs of the system keep what a user has set.
func (c Config) settingsHome() string {
	switch cmp.Or(c.System, runtime.GOOS) {
	case "darwin":
		return filepath.Join(c.Home, "Library", "Application Support")
	case "windows":
		return cmp.Or(c.Getenv("APPDATA"), filepath.Join(c.Home, "AppData", "Roaming"))
	}
	return cmp.Or(c.Getenv("XDG_CONFIG_HOME"), filepath.Join(c.Home, ".config"))
}

func vsCode(c Config) Plan {
	entry := jsonEdits{{path: []string{"servers", c.Name}, value: server{"stdio", c.Program, c.serverArgs()}}}
	command := c.hookCommandAs("SessionStart")
	hook := jsonEdits{
		{path: []string{"version"}, value: 1},
		{path: []string{"hooks", "SessionStart"}, value: commandHook{Type: "command", Command: command, Timeout: hookSeconds}, command: command},
	}
	p := Plan{Notes: []string{"VS Code starts the server once you have trusted it."}}
	if c.Scope == User {
		p.Files = []File{
			{Path: filepath.Join(c.settingsHome(), "Code", "User", "mcp.json"), What: serverEntry, change: entry},
			{Path: filepath.Join(c.Home, ".copilot", "hooks", c.Name+".json"), What: startHook, change: hook},
		}
		p.Notes = append(p.Notes, "Instructions of a user stand in the profile of VS Code: add there: "+rule)
		return p
	}
	p.Files = []File{
		{Path: filepath.Join(c.Dir, ".vscode", "mcp.json"), What: serverEntry, change: entry},
		{Path: filepath.Join(c.Dir, ".github", "hooks", c.Name+".json"), What: startHook, change: hook},
		{Path: filepath.Join(c.Dir, ".github", "instructions", c.Name+".instructions.md"), What: ruleEntry, change: wholeFile("---\napplyTo: '**'\n---\n\n" + rule + "\n")},
	}
	return p
}

func claudeDesktop(c Config) Plan {
	return Plan{
		Files: []File{{Path: filepath.Join(c.settingsHome(), "Claude", "claude_desktop_config.json"), What: serverEntry, change: jsonEdits{c.serverEdit()}}},
		Notes: []string{"Quit Claude Desktop and start it again: it reads the file then. It has no hooks: ask it to look into its mailbox."},
	}
}

func windsurf(c Config) Plan {
	return Plan{
		Files: []File{{Path: filepath.Join(c.Home, ".codeium", "windsurf", "mcp_config.json"), What: serverEntry, change: jsonEdits{c.serverEdit()}}},
		Notes: []string{"Windsurf reads the file when you refresh its list of MCP servers. Its hooks tell a model nothing: add to its rules: " + rule},
	}
}

// localServer is how opencode describes an MCP server.
type localServer struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
	Enabled bool     `json:"enabled"`
}

func openCode(c Config) Plan {
	home, name := filepath.Join(cmp.Or(c.Getenv("XDG_CONFIG_HOME"), filepath.Join(c.Home, ".config")), "opencode"), c.Name+".md"
	at, named := filepath.Join(home, name), filepath.Join(home, name)
	if c.Scope == Project {
		home, at, named = c.Dir, filepath.Join(c.Dir, ".opencode", name), ".opencode/"+name
	}
	edits := jsonEdits{
		{path: []string{"mcp", c.Name}, value: localServer{"local", append([]string{c.Program}, c.serverArgs()...), true}},
		{path: []string{"instructions"}, value: named, command: named},
	}
	return Plan{Files: []File{
		{Path: filepath.Join(home, "opencode.json"), What: serverEntry + ", and the name of a rule", change: edits},
		{Path: at, What: ruleEntry, change: wholeFile(rule + "\n")},
	}}
}
