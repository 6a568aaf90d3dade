package install

import "strings"

// serverArgs returns the arguments with which a host starts the program as its MCP server.
func (c Config) serverArgs() []string {
	args := append([]string{"mcp"}, c.agentArgs()...)
	for _, s := range c.Spaces {
		args = append(args, "--space", s)
	}
	return args
}

// agentArgs returns the arguments that say who the agent is, and where the cluster. The token is none of them.
func (c Config) agentArgs() []string {
	args := []string{"--as", c.Agent}
	if c.URL != "" {
		args = append(args, "--url", c.URL)
	}
	if c.TokenFile != "" {
		args = append(args, "--token-file", c.TokenFile)
	}
	return args
}

// hookCommand returns the shell command of a hook: it prints what waits for the agent, and nothing where nothing does.
func (c Config) hookCommand() string {
	return shell(append([]string{c.Program, "inbox", "--brief"}, c.agentArgs()...)...)
}

// hookCommandAs returns the shell command of a hook that must answer an event with JSON; see [Context].
func (c Config) hookCommandAs(event string) string {
	return c.hookCommand() + " | " + shell(c.Program, "mcp", "context", event)
}

// shell returns words as a POSIX shell reads them.
func shell(words ...string) string {
	for k, w := range words {
		words[k] = shellWord(w)
	}
	return strings.Join(words, " ")
}

func shellWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,@%+=", r)
	}
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
