package cli

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"os/user"
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

// newMCPUninstall returns the verb that takes that configuration away again.
func newMCPUninstall() *cobra.Command {
	return (&mcpInstall{cfg: install.Config{Getenv: os.Getenv}}).uninstall()
}

// mcpInstall is the verbs install and uninstall. What their configuration lacks of this machine, they find out.
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
			"No file gets a token, but the path of --token-file. Files of a project get no user's id: each user who starts the host\n" +
			"is an agent of its own, named after the host, the directory and the user.",
		Example: "  agora mcp install claude-code\n  agora mcp install codex --as reviewer --space task.review --write\n" +
			"  agora mcp install vscode --url wss://agora.example.com --token-file ~/.agora-token --scope user\n" +
			"  agora mcp install claude-desktop --write",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: install.Hosts(),
		RunE:      m.run,
	}
	f := cmd.Flags()
	f.StringVar(&m.cfg.Agent, "as", "", "agent id to be, the same for everybody who has the files (default: of host, directory and user, such as codex-myproject-anna)")
	f.StringVar(&m.cfg.URL, "url", "", "addresses of edges, separated by commas (default: that of the other verbs)")
	f.StringVar(&m.cfg.TokenFile, "token-file", "", "file of the credentials")
	f.StringArrayVar(&m.cfg.Spaces, "space", nil, "space to join; may be given several times")
	m.flags(cmd, "add it to the host's files")
	return toldUsage(cmd)
}

// flags defines the flags that both verbs have.
func (m *mcpInstall) flags(cmd *cobra.Command, write string) {
	f := cmd.Flags()
	f.StringVar(&m.cfg.Name, "name", "agora", "name of the server in the host")
	f.StringVar(&m.scope, "scope", "", "project: for this directory; user: wherever the host is started (default: project, where the host has such files)")
	f.BoolVar(&m.write, "write", false, write)
}

func (m *mcpInstall) uninstall() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall " + strings.Join(install.Hosts(), "|"),
		Short: "Print what `agora mcp install` has added to a coding agent's configuration",
		Long: "Print what `agora mcp install` has added to the configuration of a coding agent: its MCP server, and the hooks and rules\n" +
			"that belong to that. With --write it is removed: all else in the files stays, and a file that has nothing else goes.",
		Example:   "  agora mcp uninstall claude-code\n  agora mcp uninstall codex --scope user --write",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: install.Hosts(),
		RunE:      func(cmd *cobra.Command, args []string) error { return m.change(cmd, args[0], install.Removal) },
	}
	cmd.Flags().StringVar(&m.cfg.Agent, "as", "", "agent id of hooks whose server is gone already")
	m.flags(cmd, "remove it from the host's files")
	return toldUsage(cmd)
}

func (m *mcpInstall) run(cmd *cobra.Command, args []string) error {
	return m.change(cmd, args[0], install.New)
}

// change prints what is to become of a host's files, or makes that of them.
func (m *mcpInstall) change(cmd *cobra.Command, host string, planned func(install.Config) (install.Plan, error)) error {
	m.cfg.Host, m.cfg.Scope = host, install.Scope(m.scope)
	if err := m.complete(); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	plan, err := planned(m.cfg)
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
		if install.OfUser(c.Host, "") { // a program with windows, which has not the PATH of a shell
			if c.Program, err = exec.LookPath(c.Program); err != nil {
				return err
			}
		}
	}
	if c.TokenFile != "" && !filepath.IsAbs(c.TokenFile) {
		c.TokenFile = filepath.Join(c.Dir, c.TokenFile)
	}
	if c.Agent == "" {
		if c.Agent = install.Auto + ":" + c.Host; !install.OfUser(c.Host, c.Scope) {
			c.Agent += "-" + filepath.Base(c.Dir)
		}
	}
	_, err = agora.ParseOwnID(autoID(c.Agent, c.Dir))
	return err
}

// autoID returns the agent's id that an --as stands for: of "auto:NAME" that is NAME and the user's name, of "auto" the
// name is that of the directory. Any other one stands for itself. Hosts start the program and its hooks with the same
// user, in whatever directory: so files that several people have make each of them an agent of its own.
func autoID(as, dir string) string {
	name, ok := strings.CutPrefix(as, install.Auto+":")
	switch {
	case as == install.Auto:
		name = filepath.Base(dir)
	case !ok:
		return as
	}
	return name + "-" + userName()
}

// userName returns the name by which the user who runs this is known here.
func userName() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"), os.Getenv("LOGNAME"))
	if u, err := user.Current(); name == "" && err == nil {
		name = cmp.Or(u.Username, u.Uid)
	}
	return cmp.Or(strings.TrimSpace(name[strings.LastIndexAny(name, `\/`)+1:]), "user") // behind a domain of Windows
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
