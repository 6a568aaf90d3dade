package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

// addClientCommands adds the verbs of agents to root.
func addClientCommands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: clientGroup, Title: "Speaking to a cluster:"})
	for _, cmd := range []*cobra.Command{
		newListen(), newSend(), newStream(), newAsk(), newReply(),
		newJoin(), newPublish(), newAgents(), newSpaces(),
	} {
		cmd.GroupID = clientGroup
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(cmd, err) })
		if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error { return usageError(cmd, check(cmd, args)) }
		}
		cmd.Long += "\n\n" + exitHelp
		root.AddCommand(cmd)
	}
	root.AddCommand(newBench())
	addOperatorCommands(root)
}

const clientGroup = "client"

// verb is what the commands of agents have in common.
type verb struct {
	credentials
	url     string
	agent   string
	json    bool
	timeout time.Duration
	endless bool // goes on until the user ends it: then that is no failure
}

// flags defines the flags of every verb.
func (v *verb) flags(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	f.StringVar(&v.url, "url", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; /ws is added to those without a path")
	v.credentials.flags(f, "", readAgain)
	f.BoolVar(&v.json, "json", false, "print one JSON object per line")
	f.DurationVar(&v.timeout, "timeout", timeout, "end after this time; 0 for never")
}

// from defines the flag that says who speaks.
func (v *verb) from(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&v.agent, name, "", "agent id to be (default cli-<random>)")
}

// do connects, calls f and disconnects. What f returns is told on stderr, and
// becomes the exit status.
func (v *verb) do(cmd *cobra.Command, f func(ctx context.Context, c *client.Client) error) error {
	ctx := cmd.Context()
	if v.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.timeout)
		defer cancel()
	}
	cfg, err := v.config()
	if err != nil {
		return usageError(cmd, err)
	}
	cfg.OnGap = func(g client.Gap) {
		fmt.Fprintf(cmd.ErrOrStderr(), "agora: messages may be lost: seq %d to %d%s\n", g.FromSeq, g.ToSeq, inSpace(g.Space))
	}
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		if v.endless && cmd.Context().Err() != nil {
			return nil
		}
		return failed(cmd, err)
	}
	err = f(ctx, c)
	closeErr := c.Close()
	if err == nil {
		err = closeErr
	}
	return failed(cmd, err)
}

func inSpace(name string) string {
	if name == "" {
		return ""
	}
	return " of space " + name
}

func (v *verb) config() (client.Config, error) {
	secure, err := v.trust.config()
	return client.Config{
		URLs: strings.Split(v.url, ","), Agent: v.agent, Token: v.token, TokenSource: v.source(), TLS: secure,
		Card: client.Card{Type: "cli"},
	}, err
}

// name makes an id for those who gave none.
func (v *verb) name() {
	if v.agent == "" {
		v.agent = "cli-" + strings.ToLower(rand.Text()[:8])
	}
}
