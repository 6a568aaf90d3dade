package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/wire/listing"
)

func newAgents() *cobra.Command {
	var v verb
	var q client.Query
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that are there, or those that can do something",
		Long: "List the agents that have a session now, or are registered without a connection.\n\n" +
			"With --skill those that have a skill or tool of that name, and where nobody has, those that speak of its words. With --goal those\n" +
			"that fit what is to be done best, the best first.",
		Example: "  agora agents\n  agora agents --skill translate\n  agora agents --goal \"translate a contract into French\" --limit 3",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := queryFault(cmd, q); err != nil {
				return exit.WrongUsage(cmd, err)
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				if q.Skill+q.Goal != "" {
					return v.listFound(ctx, cmd, c, q)
				}
				return v.listAgents(ctx, cmd, c)
			})
		},
	}
	v.flags(cmd, waitAtMost)
	cmd.Flags().StringVar(&q.Skill, "skill", "", "name of a skill or tool that they have")
	cmd.Flags().StringVar(&q.Goal, "goal", "", "what is to be done, in words")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "agents at most, with --skill or --goal; 0 for as many as the edge finds by itself")
	return cmd
}

// queryFault returns what makes no sense in what is looked for.
func queryFault(cmd *cobra.Command, q client.Query) error {
	asked := func(name string) bool { return cmd.Flags().Changed(name) }
	switch {
	case asked("skill") && asked("goal"):
		return errors.New("--skill and --goal don't go together")
	case asked("skill") && q.Skill == "" || asked("goal") && q.Goal == "":
		return errors.New("--skill and --goal can't be empty")
	case q.Limit < 0 || q.Limit > 0 && q.Skill+q.Goal == "":
		return errors.New("--limit is a number from 1, and goes with --skill or --goal")
	}
	return nil
}

func (v *verb) listAgents(ctx context.Context, cmd *cobra.Command, c *client.Client) error {
	all, err := insist(ctx, v.tell, func() ([]agora.Agent, error) { return c.Agents(ctx) })
	if err != nil {
		return err
	}
	t := v.table(cmd, "ID\tNAME\tSINCE\tENDPOINT")
	for _, a := range all {
		since := a.RegisteredAt.Format(time.RFC3339)
		t.row(listing.Agent{ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt}, string(a.ID), a.Name, since, a.Endpoint)
	}
	return t.end()
}

func (v *verb) listFound(ctx context.Context, cmd *cobra.Command, c *client.Client, q client.Query) error {
	all, err := insist(ctx, v.tell, func() ([]agora.Agent, error) { return c.FindAgents(ctx, q) })
	if err != nil {
		return err
	}
	t := v.table(cmd, "ID\tNAME\tSKILLS\tDESCRIPTION")
	for _, a := range all {
		t.row(listing.AgentOf(a), string(a.ID), a.Name, skillNames(a), a.Description)
	}
	return t.end()
}

// skillNames returns the names of what an agent can do.
func skillNames(a agora.Agent) string {
	var names []string
	for _, s := range append(a.Skills[:len(a.Skills):len(a.Skills)], a.Tools...) {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

func newAgent() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:     "agent ID",
		Short:   "Show all that an agent says of itself",
		Long:    "Show all that an agent says of itself, with what its skills and tools take.",
		Example: "  agora agent bob\n  agora agent bob --json | jq .skills",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				a, err := insist(ctx, v.tell, func() (agora.Agent, error) { return c.AgentCard(ctx, args[0]) })
				if err != nil {
					return err
				}
				return v.showAgent(cmd, a)
			})
		},
	}
	v.flags(cmd, waitAtMost)
	v.completeArgument(cmd, agentNames)
	return cmd
}

// showAgent prints a card: for people a line for each thing that it says.
func (v *verb) showAgent(cmd *cobra.Command, a agora.Agent) error {
	t := v.table(cmd, "ID\t"+terminal.Visible(string(a.ID)))
	if t.json {
		t.row(listing.AgentOf(a))
		return t.end()
	}
	for _, m := range [...]struct{ what, text string }{
		{"NAME", a.Name}, {"SINCE", a.RegisteredAt.Format(time.RFC3339)}, {"STATUS", string(a.Status)}, {"DIALECT", a.DialectName()},
		{"TYPE", a.Type}, {"VERSION", a.Version}, {"DOMAIN", a.Domain}, {"DESCRIPTION", a.Description}, {"ENDPOINT", a.Endpoint},
		{"CAPABILITIES", strings.Join(a.Capabilities, ", ")}, {"PEER", a.Peer}, {"ADDRESSES", strings.Join(a.Addresses, ", ")},
		{"METADATA", string(a.Metadata)},
	} {
		if m.text != "" {
			t.row(nil, m.what, m.text)
		}
	}
	for _, of := range [...]struct {
		what string
		all  []agora.Skill
	}{{"SKILL", a.Skills}, {"TOOL", a.Tools}} {
		for _, s := range of.all {
			t.row(nil, of.what, strings.Join(strings.Fields(s.Name+" "+s.Description+" "+string(s.Schema)), " "))
		}
	}
	return t.end()
}
