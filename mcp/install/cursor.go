package install

import "path/filepath"

// cursorHook is a hook of Cursor's.
type cursorHook struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

// rule tells the model what hooks tell it elsewhere. Cursor may drop what hooks say at the start of a session.
const rule = "Other agents write to you by Agora. Call the tool agora_inbox before you begin a task, and again when you have finished it."

const ruleHead = "---\ndescription: The mailbox that other agents write to\nalwaysApply: true\n---\n\n"

func cursor(c Config) Plan {
	home := c.Home
	if c.Scope == Project {
		home = c.Dir
	}
	hooks := jsonEdits{{path: []string{"version"}, value: 1}}
	for _, event := range []string{"sessionStart", "beforeSubmitPrompt"} {
		command := c.hookCommandAs(event)
		hooks = append(hooks, edit{path: []string{"hooks", event}, value: cursorHook{command, hookSeconds}, command: command})
	}
	p := Plan{Notes: []string{"Cursor starts the server once you have enabled it in its settings, under MCP."}, Files: []File{
		{Path: filepath.Join(home, ".cursor", "mcp.json"), What: serverEntry, change: jsonEdits{c.serverEdit()}},
		{Path: filepath.Join(home, ".cursor", "hooks.json"), What: hookEntries, change: hooks},
	}}
	if c.Scope == Project {
		at := filepath.Join(home, ".cursor", "rules", c.Name+".mdc")
		p.Files = append(p.Files, File{Path: at, What: ruleEntry, change: wholeFile(ruleHead + rule + "\n")})
	} else {
		p.Notes = append(p.Notes, "Rules of a user stand in Cursor's settings, and not in a file: add there: "+rule)
	}
	return p
}
