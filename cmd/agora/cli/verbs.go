// Package cli has the verbs by which agents and operators speak to a cluster. They need no more of it than addresses,
// as any client.
package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// AddCommands adds the verbs of agents to root.
func AddCommands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: AgentGroup, Title: "Speaking to a cluster:"})
	for _, cmd := range []*cobra.Command{
		newListen(), newServe(), newSend(), newStream(), newAsk(), newReply(),
		newJoin(), newPublish(), newAgents(), newAgent(), newSpaces(),
		newFind(), newCard(), newHandoff(), newSidecar(), newMCP(), newInbox(),
		newExecute(), newTools(), newCall(), newNodes(), newApprovals(), newDecide(approves), newDecide(denies),
	} {
		root.AddCommand(prepareVerb(cmd))
	}
	space := &cobra.Command{Use: "space", Short: "Look after spaces", Args: cobra.NoArgs, GroupID: AgentGroup}
	space.AddCommand(toldUsage(newCreate()))
	root.AddCommand(space)
	addOperatorCommands(root)
	completeOperators(root)
}

// prepareVerb has wrong usage told in the way of verbs, and help tell their exit statuses; the one who runs it is
// warned of secrets that others can read.
func prepareVerb(cmd *cobra.Command) *cobra.Command {
	cmd.GroupID = AgentGroup
	return toldUsage(cmd)
}

// toldUsage is prepareVerb for a command below another.
func toldUsage(cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.WrongUsage(cmd, err) })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return exit.WrongUsage(cmd, check(cmd, args)) }
	}
	warnsReadable(cmd)
	cmd.Long += "\n\n" + exit.Help
	return cmd
}

const AgentGroup = "client"

// verb is what the commands of agents have in common.
type verb struct {
	access.Credentials
	url     string
	agent   string
	idFlag  string // how the agent is named; empty for a verb that is nobody
	json    bool
	timeout time.Duration
	endless bool         // continues until the user ends it: then that is no failure
	tell    func(string) // tells people how it stands; nil: on a line of stderr
	hint    string       // told once it is connected
	skills  []agora.Skill
	wait    bool // for a cluster that is not there yet
}

// flags defines the flags of every verb.
func (v *verb) flags(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	f.StringVar(&v.url, "url", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; /ws is added to those without a path, and http:// is taken for ws://")
	v.Credentials.Flags(f, "", access.ReadAgain)
	f.BoolVar(&v.json, "json", false, "print one JSON object per line")
	f.DurationVar(&v.timeout, "timeout", timeout, "end after this time; 0 for never")
}

// from defines the flag that says who speaks.
func (v *verb) from(cmd *cobra.Command, name string) {
	v.idFlag = "--" + name
	cmd.Flags().StringVar(&v.agent, name, "", "agent id to be (default: the one that the token is for, or cli-<random>)")
}

// do connects, calls f and disconnects. What f returns is told on stderr, and
// becomes the exit status.
func (v *verb) do(cmd *cobra.Command, f func(ctx context.Context, c *client.Client) error) error {
	ctx, cancel := v.begin(cmd)
	defer cancel()
	cfg, err := v.config()
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if f := cmd.Flags().Lookup("wait"); f != nil && !f.Changed {
		v.wait = terminal.Is(cmd.OutOrStdout())
	}
	c, err := v.connect(ctx, cfg)
	if err != nil {
		if v.endless && cmd.Context().Err() != nil {
			return nil
		}
		return exit.Failed(cmd, v.advised(err, true))
	}
	err = f(ctx, c)
	closeErr := c.Close()
	if err == nil {
		err = closeErr
	}
	if v.endless && cmd.Context().Err() != nil {
		return nil // the user has ended it
	}
	return exit.Failed(cmd, v.advised(err, false))
}

// connect connects as the agent that was named, or as the one that the credentials are for.
func (v *verb) connect(ctx context.Context, cfg client.Config) (*client.Client, error) {
	if v.agent == "" && v.idFlag != "" {
		if err := v.name(ctx, cfg); err != nil {
			return nil, err
		}
	}
	cfg.Agent = v.agent
	cfg.OnGap = func(g client.Gap) { v.tell(lossOf(g)) }
	standing := &standing{tell: v.tell, agent: v.agent, quiet: !v.endless, hint: v.hint}
	cfg.OnStatus = standing.status
	return v.dial(ctx, cfg)
}

// lossOf says what a gap means.
func lossOf(g client.Gap) string {
	switch {
	case g.StreamID != "":
		return "the beginning of a stream from " + terminal.NameOf(g.From) + " is lost"
	case g.Space != "":
		return fmt.Sprintf("messages may be lost: seq %d to %d of space %s", g.FromSeq, g.ToSeq, g.Space)
	}
	return fmt.Sprintf("messages may be lost: seq %d to %d", g.FromSeq, g.ToSeq)
}

func (v *verb) config() (client.Config, error) {
	secure, err := v.Trust.Config()
	return client.Config{
		URLs: access.URLs(v.url), Agent: v.agent, Token: v.Token, TokenSource: v.Source(), TLS: secure,
		Card: client.Card{Type: "cli", Skills: v.skills},
	}, err
}

// name finds an id for those who gave none: that of their credentials, where those are for one agent, or one of chance.
func (v *verb) name(ctx context.Context, cfg client.Config) error {
	if v.Given() {
		id, err := insist(ctx, v.tell, func() (string, error) {
			id, err := client.AgentOf(ctx, cfg)
			return id, v.awaited(err)
		})
		if err != nil || id != "" {
			v.agent = id
			return err
		}
	}
	v.agent = "cli-" + strings.ToLower(rand.Text()[:8])
	return nil
}
