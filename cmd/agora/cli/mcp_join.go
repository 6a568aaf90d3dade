package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/agora-relay/agora/mcp/member"
)

func newMCPJoin() *cobra.Command {
	j := &mcpJoiner{}
	cmd := &cobra.Command{
		Use:   "join [--as ID] {-- COMMAND… | --url URL}",
		Short: "Make an MCP server an agent whose tools others call",
		Long: "Make an MCP server an agent of the cluster: its tools are in the directory with their schemas, and agents of every\n" +
			"dialect call them. It is COMMAND, which speaks over stdin and stdout, or a server over Streamable HTTP at --url. Its\n" +
			"progress streams, a cancel cancels, changes of its tools are followed. COMMAND is started again when it ends; what it\n" +
			"writes on stderr goes to the log. Of the environment it gets PATH, and what --env names.\n" +
			"Edges are named by --edges, or AGORA_URL as for every verb. SIGTERM ends it, and the server.",
		Example: "  agora mcp join --as files -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  agora mcp join --as search --url https://search.example.com/mcp --edges wss://agora.example.com",
		Args: cobra.ArbitraryArgs,
		RunE: j.run,
	}
	f := cmd.Flags()
	j.hostFlags(cmd)
	f.Lookup("as").Usage = "agent id to be (default: the name of the server)"
	f.Lookup("url").Usage, f.Lookup("url").DefValue = "address of an MCP server over Streamable HTTP, in place of COMMAND", ""
	j.url = ""
	f.StringVar(&j.edges, "edges", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; http:// and https:// are as good as ws:// and wss://")
	f.StringArrayVar(&j.env, "env", nil, "NAME of a variable of the environment that COMMAND gets, or NAME=VALUE; may be given several times")
	f.IntVar(&j.cfg.MaxCalls, "max-calls", 64, "calls at a time; further ones are refused")
	f.DurationVar(&j.cfg.CallTimeout, "call-timeout", 5*time.Minute, "after which a call that the server does not answer ends")
	f.StringVar(&j.level, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&j.format, config.FormatFlag, "", "text, json or short (default: short at a terminal, else text)")
	return toldUsage(cmd)
}

// mcpJoiner is the verb mcp join.
type mcpJoiner struct {
	verb
	cfg           member.Config
	edges         string
	env           []string
	level, format string
}

func (j *mcpJoiner) run(cmd *cobra.Command, args []string) error {
	m, err := j.open(cmd, args)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	return exit.Failed(cmd, j.told(m.Run(cmd.Context())))
}

// told adds what to do to an error that ends the verb, where that is known: edges have another flag here than
// elsewhere, and no prompt.
func (j *mcpJoiner) told(err error) error {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentExists {
		return exit.Advise(err, "end that, or give this one another id (--as)")
	}
	err = j.advised(err, true)
	if a, ok := errors.AsType[*exit.Advised](err); ok {
		a.Advice = strings.ReplaceAll(a.Advice, "--url", "--edges")
	}
	return err
}

// open returns the member that the flags are of.
func (j *mcpJoiner) open(cmd *cobra.Command, command []string) (m *member.Member, err error) {
	j.readVariables(cmd)
	j.cfg.URL, j.cfg.Command, j.cfg.Version = j.url, command, version.String()
	if j.cfg.MaxCalls < 1 {
		return nil, errors.New("--max-calls must be at least 1")
	}
	if j.cfg.CallTimeout <= 0 {
		return nil, errors.New("--call-timeout must be more than nothing")
	}
	if j.cfg.Env, err = environment(j.env); err != nil {
		return nil, err
	}
	if j.cfg.Log, err = logOf(cmd, j.level, j.format); err != nil {
		return nil, err
	}
	j.url = j.edges
	if j.cfg.Client, err = j.config(); err != nil {
		return nil, err
	}
	return member.New(j.cfg)
}

// readVariables undoes what variables have set that mean something else: AGORA_URL names edges, for every verb, and
// AGORA_EDGES says to `agora dev` how many there are.
func (j *mcpJoiner) readVariables(cmd *cobra.Command) {
	o := config.OriginsOf(cmd)
	if strings.HasPrefix(o.Of("url"), "environment") {
		j.url = ""
	}
	if o.Of("edges") == "flag" {
		return
	}
	j.edges = cmd.Flags().Lookup("edges").DefValue
	if edges, ok := os.LookupEnv(config.Variable("url")); ok {
		j.edges = edges
	}
}

// environment returns the variables that are named, with the values that they have here where they have none.
func environment(named []string) (all []string, err error) {
	for _, v := range named {
		name, _, given := strings.Cut(v, "=")
		if name == "" {
			return nil, fmt.Errorf("--env: %q names no variable", v)
		}
		if !given {
			value, ok := os.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("--env: %s is not set", name)
			}
			v = name + "=" + value
		}
		all = append(all, v)
	}
	return all, nil
}
