package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/agora-relay/agora/mcp/agenttools"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/agora-relay/agora/mcp/stdio"
)

func newMCP() *cobra.Command {
	m := &mcpVerb{operator: operator{tenant: agora.DefaultTenant, timeout: waitAtMost}}
	cmd := &cobra.Command{
		Use:   "mcp --as ID | --tools",
		Short: "Be an MCP server that makes its host, such as a coding agent, an agent of the cluster",
		Long: "Be an MCP server over stdin and stdout. The model of its host becomes the agent ID: it reads its mailbox, sends, asks\n" +
			"and answers, and takes part in spaces, by tools named agora_…. Messages wait in the mailbox until the model has\n" +
			"acknowledged them, also while no host runs. The connection is made again, to any of the edges, whenever it is lost;\n" +
			"`agora mcp install` makes a host's configuration. It ends when stdin does.\n\n" +
			"With --tools it offers the tools of the cluster's agents as AGENT__TOOL, and no others unless --as is given too. Of more\n" +
			"than 40 it offers agora_find_tool and agora_call_tool instead. --from chooses whose, by patterns such as 'files-*,db'.",
		Example: "  agora mcp --as claude-1\n  agora mcp --as claude-1 --url wss://agora.example.com --token-file ~/.agora/token --space build\n" +
			"  agora mcp --tools --from 'files-*'",
		Args: cobra.NoArgs,
		RunE: m.run,
	}
	f := cmd.Flags()
	m.hostFlags(cmd)
	f.StringArrayVar(&m.spaces, "space", nil, "space to be a member of from the start; may be given several times")
	f.StringArrayVar(&m.can, "skill", nil, "name of a skill by which the agent is found; may be given several times")
	f.StringVar(&m.description, "description", "", "what the agent is for, in a sentence")
	f.BoolVar(&m.tools, "tools", false, "offer the tools of the cluster's agents")
	f.StringVar(&m.fromAgents, "from", "", "patterns of the ids of agents whose tools are offered, separated by commas; * stands for what has no slash (default: all)")
	f.StringVar(&m.admin, "admin", "", "address of the admin port of any edge, such as http://HOST:9100, for agora_why; the edge on this machine if empty")
	f.StringVar(&m.operator.tokenFile, "admin.token-file", "", "file of the token that the admin port asks for, where it does")
	f.StringVar(&m.level, "log.level", "warn", "debug, info, warn or error")
	f.StringVar(&m.format, config.FormatFlag, "", "text, json or short (default: short at a terminal, else text)")
	cmd.AddCommand(newMCPJoin(), newMCPInstall(), newMCPUninstall(), newMCPContext())
	return cmd
}

// hostFlags defines the flags that say which agent a host is, and of which cluster.
func (v *verb) hostFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&v.url, "url", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; http:// and https:// are as good as ws:// and wss://")
	v.Credentials.Flags(f, "", access.ReadAgain)
	v.from(cmd, "as")
	f.Lookup("as").Usage = "agent id to be; auto:NAME is NAME and your user name, auto the directory's name and yours (default: the one that the token is for)"
}

// own returns the agent id that --as stands for.
func (v *verb) own() string {
	dir, err := os.Getwd()
	if err != nil {
		dir = "agent"
	}
	return autoID(v.agent, dir)
}

// mcpVerb is the verb mcp.
type mcpVerb struct {
	verb
	operator
	spaces, can   []string
	description   string
	tools         bool
	fromAgents    string
	level, format string
}

func (m *mcpVerb) run(cmd *cobra.Command, _ []string) error {
	cfg, err := m.hostConfig(cmd)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	h := host.New(cfg)
	var others host.Catalog
	if m.tools {
		others = agenttools.New(h.Present(), agenttools.Config{From: m.fromAgents, Log: cfg.Log})
	}
	return exit.Failed(cmd, h.Serve(cmd.Context(), standardStreams(cmd), others))
}

// hostConfig returns what the flags say.
func (m *mcpVerb) hostConfig(cmd *cobra.Command) (cfg host.Config, err error) {
	if cfg.Log, err = logOf(cmd, m.level, m.format); err != nil {
		return cfg, err
	}
	if m.fromAgents != "" && !m.tools {
		return cfg, errors.New("--from goes with --tools")
	}
	if err := agenttools.CheckPattern(m.fromAgents); err != nil {
		return cfg, fmt.Errorf("--from: %w", err)
	}
	if cfg.Bare = m.tools && m.agent == ""; cfg.Bare && len(m.spaces) > 0 {
		return cfg, errors.New("--space goes with --as")
	}
	for _, name := range m.can {
		m.verb.skills = append(m.verb.skills, agora.Skill{Name: name})
	}
	if err := m.identify(cmd); err != nil {
		return cfg, err
	}
	if cfg.Client, err = m.verb.config(); err != nil {
		return cfg, err
	}
	cfg.Client.Card.Type, cfg.Client.Card.Description = "mcp", m.description
	if cfg.Version = version.String(); cfg.Bare {
		return cfg, nil
	}
	if cfg.Socket, err = host.Socket(m.url, m.agent); err != nil {
		cfg.Log.Warn("hooks can't ask this host what waits", "err", err)
	}
	m.operator.Trust = m.verb.Credentials.Trust
	cfg.Spaces, cfg.Why = m.spaces, m.fate
	return cfg, nil
}

// identify finds the agent's id where it is not given: that of the credentials.
func (m *mcpVerb) identify(cmd *cobra.Command) error {
	m.agent = m.verb.own()
	if m.agent == "" && m.Given() {
		cfg, err := m.verb.config()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), waitAtMost)
		defer cancel()
		if m.agent, err = client.AgentOf(ctx, cfg); err != nil {
			return err
		}
	}
	switch {
	case m.agent == "" && m.tools:
		m.agent = "mcp-" + strings.ToLower(rand.Text()[:8])
	case m.agent == "":
		return errors.New("say which agent to be: --as ID")
	}
	_, err := agora.ParseOwnID(m.agent)
	return err
}

// fate asks an edge's admin port what became of a message.
func (m *mcpVerb) fate(ctx context.Context, id string) (any, error) {
	b, err := m.fetch(ctx, http.MethodGet, "/v1/why", url.Values{"id": {id}})
	if err != nil {
		return nil, fmt.Errorf("the cluster's operators' API can't be asked from here (%s); the person who runs this can name it by --admin", exit.Sentence(err))
	}
	return json.RawMessage(b), nil
}

// standardStreams is MCP over a command's stdin and stdout.
func standardStreams(cmd *cobra.Command) mcp.Transport {
	in, ok := cmd.InOrStdin().(io.ReadCloser)
	if !ok {
		in = io.NopCloser(cmd.InOrStdin())
	}
	return &stdio.Transport{In: in, Out: cmd.OutOrStdout()}
}

func newInbox() *cobra.Command {
	var v verb
	var brief bool
	cmd := &cobra.Command{
		Use:   "inbox --as ID",
		Short: "List what waits in an agent's mailbox, and take nothing of it",
		Long: "List the messages that wait for an agent and were not acknowledged. Nothing is acknowledged by that. Where `agora mcp`\n" +
			"is that agent on this machine it is asked; else this program is the agent for a moment. --brief is for hooks of coding\n" +
			"agents: a line or two, nothing where nothing waits or it can't be known, and the exit status is 0.",
		Example: "  agora inbox --as claude-1\n  agora inbox --as claude-1 --brief",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if v.agent == "" {
				return exit.WrongUsage(cmd, errors.New("say whose mailbox: --as ID"))
			}
			v.agent = v.own()
			w, err := v.waiting(cmd)
			switch {
			case brief && err != nil:
				return nil
			case err != nil:
				return exit.Failed(cmd, v.advised(err, true))
			case brief:
				return printBrief(cmd.OutOrStdout(), w)
			}
			return v.printWaiting(cmd, w)
		},
	}
	v.hostFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&v.json, "json", false, "print one JSON object")
	f.BoolVar(&brief, "brief", false, "print a line or two for a model, and nothing where nothing waits")
	f.DurationVar(&v.timeout, "timeout", 2*time.Second, "end after this time; 0 for never")
	return cmd
}

// waiting asks the host of the agent on this machine what waits, or looks itself.
func (v *verb) waiting(cmd *cobra.Command) (w host.Waiting, err error) {
	ctx, cancel := v.begin(cmd)
	defer cancel()
	path, err := host.Socket(v.url, v.agent)
	if err == nil {
		if w, err := host.AskHost(ctx, path); err == nil {
			return w, nil
		}
	}
	cfg, err := v.config()
	if err != nil {
		return w, err
	}
	cfg.Agent = v.agent
	w, err = host.Look(ctx, cfg)
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentExists && path != "" { // a host may just have been started
		if again, err := host.AskHost(ctx, path); err == nil {
			return again, nil
		}
	}
	return w, err
}

// printBrief says in a line or two what waits; nothing where nothing does.
func printBrief(out io.Writer, w host.Waiting) error {
	if len(w.Messages) == 0 {
		return nil
	}
	var from []string
	requests := 0
	for _, m := range w.Messages {
		if sender := quote.ID(m.From); !slices.Contains(from, sender) { // this line is put before a model as it is
			from = append(from, sender)
		}
		if m.Kind == "request" {
			requests++
		}
	}
	text := fmt.Sprintf("Agora: unread in the mailbox of agent %s, which you are: %d, from %s", quote.Name(w.Agent), len(w.Messages)+w.More, strings.Join(from[:min(len(from), 10)], ", "))
	if requests > 0 {
		text += fmt.Sprintf("; waiting for your answer: %d", requests)
	}
	_, err := fmt.Fprintln(out, text+". Read with the tool agora_inbox.")
	return err
}

// printWaiting lists what waits.
func (v *verb) printWaiting(cmd *cobra.Command, w host.Waiting) error {
	p := newPrinter(cmd, v.json, false)
	if v.json {
		return p.jsonLine(w)
	}
	t := v.table(cmd, "SEQ\tFROM\tKIND\tTEXT")
	for _, m := range w.Messages {
		t.row(m, fmt.Sprint(m.Seq), terminal.NameOf(m.From), m.Kind, m.Text)
	}
	if err := t.end(); err != nil || w.More == 0 {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "and %d more\n", w.More)
	return err
}
