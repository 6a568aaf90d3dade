package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// once has every edge tried once: what is refused for the moment is tried again by the verb, which tells so.
const once = time.Nanosecond

// iatConfig returns the configuration of a client that speaks envelopes.
func (v *verb) iatConfig(patience time.Duration) (iat.Config, error) {
	secure, err := v.Trust.Config()
	urls := access.URLs(v.url)
	for i, u := range urls {
		urls[i] = strings.TrimSuffix(u, "/ws")
	}
	cfg := iat.Config{URLs: urls, Agent: v.agent, TLS: secure, Patience: patience, Token: v.Token}
	if source := v.Source(); source != nil {
		cfg.TokenSource = source
	}
	return cfg, err
}

// doIAT is [verb.do] for a client that speaks envelopes. One that is nobody needs no id.
func (v *verb) doIAT(cmd *cobra.Command, patience time.Duration, f func(context.Context, iat.Config) error) error {
	ctx, cancel := v.begin(cmd)
	defer cancel()
	cfg, err := v.iatConfig(patience)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if v.agent == "" && v.idFlag == fromFlag {
		socket, err := v.config()
		if err != nil {
			return exit.WrongUsage(cmd, err)
		}
		if err := v.name(ctx, socket); err != nil {
			return exit.Failed(cmd, v.advised(err, true))
		}
		cfg.Agent = v.agent
	}
	err = f(ctx, cfg)
	if err != nil && v.endless && cmd.Context().Err() != nil {
		return nil
	}
	e, ok := errors.AsType[*iat.Error](err)
	if ok && e.From != "" && e.From != string(agora.Cluster) {
		said := *e // by an agent, which is named
		said.Message = terminal.NameOf(e.From) + " answered: " + e.Message
		return exit.Failed(cmd, &said)
	}
	return exit.Failed(cmd, v.advised(err, ok && e.From == "" && (e.HTTP == 0 || strings.HasPrefix(e.Message, "the edge answered 404"))))
}

// fromFlag names the agent that speaks. Without it, that is the one that the credentials are for.
const fromFlag = "--from"

// withIAT is doIAT with a client.
func (v *verb) withIAT(cmd *cobra.Command, f func(context.Context, *iat.Client) error) error {
	return v.doIAT(cmd, once, func(ctx context.Context, cfg iat.Config) error {
		c, err := iat.New(cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		return f(ctx, c)
	})
}

// begin returns the context of a verb, which ends with its --timeout, and sees to it that there is something to tell
// people by.
func (v *verb) begin(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	if v.tell == nil {
		v.tell = func(what string) { fmt.Fprintf(cmd.ErrOrStderr(), terminal.Program+": %s\n", terminal.Visible(what)) }
	}
	if v.timeout > 0 {
		return context.WithTimeout(cmd.Context(), v.timeout)
	}
	return cmd.Context(), func() {}
}

func newTools() *cobra.Command {
	var v verb
	var q iat.ToolQuery
	cmd := &cobra.Command{
		Use:     "tools",
		Short:   "List the tools that agents offer",
		Long:    "List the tools that agents offer to be called by name, whatever their dialect. With --json with their schemas.",
		Example: "  agora tools\n  agora tools --agent bob --json\n  agora tools --q 'list files'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.withIAT(cmd, func(ctx context.Context, c *iat.Client) error { return v.listTools(ctx, cmd, c, q) })
		},
	}
	v.flags(cmd, waitAtMost)
	cmd.Flags().StringVar(&q.Name, "name", "", "those of this name alone")
	cmd.Flags().StringVar(&q.Agent, "agent", "", "those of this agent alone")
	cmd.Flags().StringVar(&q.Words, "q", "", "those that speak of these words alone")
	v.completeFlag(cmd, "agent", agentNames)
	return cmd
}

func (v *verb) listTools(ctx context.Context, cmd *cobra.Command, c *iat.Client, q iat.ToolQuery) error {
	more := false
	all, err := insist(ctx, v.tell, func() (all []iat.Tool, err error) {
		all, more, err = c.Tools(ctx, q)
		return all, err
	})
	if err != nil {
		return err
	}
	t := v.table(cmd, "AGENT\tTOOL\tDESCRIPTION")
	for _, tool := range all {
		t.row(tool, tool.Agent, tool.Name, strings.Join(strings.Fields(tool.Description), " "))
	}
	if more {
		v.tell("there are more: --name, --agent and --q say which")
	}
	return t.end()
}

func newCall() *cobra.Command {
	var v verb
	var to string
	in := argument{what: "JSON", at: 1}
	cmd := &cobra.Command{
		Use:   "call --to ID TOOL [JSON | --file FILE]",
		Short: "Call a tool of an agent and print its result",
		Long: "Have an agent call one of its tools, and print the result, as it comes. Ctrl-C tells the agent that nobody waits. The arguments are a JSON object, which the cluster\n" +
			"holds against the tool's schema; - is the one on stdin, unless it stands behind --.",
		Example: "  agora call --to bob list_files '{\"dir\":\"docs\"}'\n  agora call --to bob word_count --file arguments.json --json",
		Args:    in.last,
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := argumentsOf(cmd, args, &in)
			if err != nil {
				return exit.WrongUsage(cmd, err)
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				call, err := c.CallTool(ctx, to, args[0], arguments)
				if err != nil {
					return err
				}
				defer call.Close()
				return newPrinter(cmd, v.json, false).answered(ctx, call)
			})
		},
	}
	v.flags(cmd, 4*waitAtMost)
	v.from(cmd, "from")
	v.addressee(cmd, &to)
	in.flags(cmd)
	v.completeArgument(cmd, noNames)
	return cmd
}

// noNames is for what no shell can know.
func noNames(context.Context, *client.Client) ([]string, error) { return nil, nil }

// argumentsOf returns the arguments of a call: an object.
func argumentsOf(cmd *cobra.Command, args []string, in *argument) (json.RawMessage, error) {
	if !in.there(args) {
		return json.RawMessage(`{}`), nil
	}
	b, err := in.read(cmd, args)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil || members == nil {
		return nil, errors.New("the arguments are no JSON object")
	}
	return b, nil
}

// textOf returns what a payload says: a text, where it is one or little else.
func textOf(payload json.RawMessage) string {
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return text
	}
	return readable(payload)
}
