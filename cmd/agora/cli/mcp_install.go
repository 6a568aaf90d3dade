package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/mcp/install"
)

// newMCPInstall returns the verb that configures the host of a model. It belongs below `agora mcp`.
func newMCPInstall() *cobra.Command {
	return (&mcpInstall{cfg: install.Config{Getenv: os.Getenv}}).command()
}

// mcpInstall is the verb install. What its configuration lacks of this machine, it finds out.
type mcpInstall struct {
	cfg   install.Config
	scope string
	write bool
}

func (m *mcpInstall) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install " + strings.Join(install.Hosts(), "|"),
		Short: "Print the configuration by which a coding agent is an agent of the cluster",
		Long: "Print what to add to the configuration of a coding agent: the MCP server `agora mcp`, by which its model sends,\n" +
			"asks and reads, and hooks that tell the model at the start of a session and at each prompt what waits for it.\n" +
			"With --write it is added to the files: all else in them stays, and a file that can't be understood is left alone.\n" +
			"No file gets a token, but the path of --token-file.",
		Example: "  agora mcp install claude-code\n  agora mcp install codex --as reviewer --space task.review --write\n" +
			"  agora mcp install gemini --url wss://agora.example.com --token-file ~/.agora-token --scope user --as gemini-anna",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: install.Hosts(),
		RunE:      m.run,
	}
	f := cmd.Flags()
	f.StringVar(&m.cfg.Agent, "as", "", "agent id to be (default: the host and the name of the directory, such as codex-myproject)")
	f.StringVar(&m.cfg.URL, "url", "", "addresses of edges, separated by commas (default: that of the other verbs)")
	f.StringVar(&m.cfg.TokenFile, "token-file", "", "file of the credentials")
	f.StringArrayVar(&m.cfg.Spaces, "space", nil, "space to join; may be given several times")
	f.StringVar(&m.cfg.Name, "name", "agora", "name of the server in the host")
	f.StringVar(&m.scope, "scope", string(install.Project), "project: for this directory; user: wherever the host is started, which takes --as")
	f.BoolVar(&m.write, "write", false, "add it to the host's files")
	return toldUsage(cmd)
}

func (m *mcpInstall) run(cmd *cobra.Command, args []string) error {
	m.cfg.Host, m.cfg.Scope = args[0], install.Scope(m.scope)
	if err := m.complete(); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	plan, err := install.New(m.cfg)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if m.write {
		return exit.Failed(cmd, plan.Write(cmd.OutOrStdout()))
	}
	return exit.Failed(cmd, plan.Print(cmd.OutOrStdout()))
}

// complete finds out what the configuration lacks.
func (m *mcpInstall) complete() (err error) {
	c := &m.cfg
	if c.Dir == "" {
		if c.Dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	if c.Home == "" {
		if c.Home, err = os.UserHomeDir(); err != nil {
			return err
		}
	}
	if c.Program == "" {
		if c.Program, err = ownCommand(); err != nil {
			return err
		}
	}
	if c.TokenFile != "" && !filepath.IsAbs(c.TokenFile) {
		c.TokenFile = filepath.Join(c.Dir, c.TokenFile)
	}
	if c.Agent == "" && c.Scope == install.User {
		return errors.New("--scope user takes --as: no directory gives the agent its name")
	}
	if c.Agent == "" {
		c.Agent = c.Host + "-" + filepath.Base(c.Dir)
	}
	_, err = agora.ParseOwnID(c.Agent)
	return err
}

// ownCommand returns how this program is started: by its name where PATH leads to it, else by its path.
func ownCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	here, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath(terminal.Program); err == nil {
		if there, err := os.Stat(found); err == nil && os.SameFile(here, there) {
			return terminal.Program, nil
		}
	}
	return self, nil
}

// longestContext is the most bytes of text that are put before a model.
const longestContext = 64 << 10

// newMCPContext returns the verb that puts text before a model. It belongs below `agora mcp`.
func newMCPContext() *cobra.Command {
	return toldUsage(&cobra.Command{
		Use:   "context " + strings.Join(install.Events(), "|"),
		Short: "Print text as a hook of Gemini CLI or Cursor does that adds it to the model's context",
		Long: "Read text from stdin, and print it in the JSON by which a hook of Gemini CLI (SessionStart, BeforeAgent) or of Cursor\n" +
			"(sessionStart, beforeSubmitPrompt) adds it to the context of the model. Of no text nothing is printed. Hooks of other\n" +
			"hosts print text as it is, and need none of this. `agora mcp install` writes hooks that use it.",
		Example:   "  agora inbox --brief --as gemini-myproject | agora mcp context BeforeAgent",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: install.Events(),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), longestContext))
			if err != nil {
				return exit.Failed(cmd, err)
			}
			b, err := install.Context(args[0], string(text))
			if err == nil {
				_, err = cmd.OutOrStdout().Write(b)
			}
			return exit.Failed(cmd, err)
		},
	})
}
