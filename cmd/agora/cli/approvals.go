package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newApprovals() *cobra.Command {
	a := &approver{}
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List what agents ask approval for",
		Long: "List what waits for a decision: its age, the agent that asks, what for, and the id for `agora approve` and\n" +
			"`agora deny`. With --watch it goes on, and tells each change on a line of its own.",
		Example: "  agora approvals\n  agora approvals --agent bob --all\n  agora approvals --watch",
		Args:    cobra.NoArgs,
		RunE:    a.run,
	}
	a.flags(cmd, waitAtMost)
	cmd.Flags().StringVar(&a.asker, "agent", "", "what this agent asks for alone")
	cmd.Flags().StringVar(&a.state, "state", string(iat.Pending), "what is in this state alone: pending, approved, denied or expired")
	cmd.Flags().BoolVar(&a.all, "all", false, "what is decided, too")
	cmd.Flags().BoolVar(&a.watch, "watch", false, "go on with what changes")
	a.completeFlag(cmd, "agent", agentNames)
	return cmd
}

// approver is the verb approvals.
type approver struct {
	verb
	asker, state string
	all, watch   bool
}

func (a *approver) run(cmd *cobra.Command, _ []string) error {
	states := []iat.ApprovalState{iat.Pending, iat.Approved, iat.Denied, iat.Expired}
	if !slices.Contains(states, iat.ApprovalState(a.state)) {
		return exit.WrongUsage(cmd, errors.New("--state is pending, approved, denied or expired"))
	}
	if a.all && cmd.Flags().Changed("state") {
		return exit.WrongUsage(cmd, errors.New("--all and --state don't go together"))
	}
	q := iat.ApprovalQuery{Agent: a.asker, State: iat.ApprovalState(a.state)}
	if a.all || a.watch && !cmd.Flags().Changed("state") {
		q.State = ""
	}
	if a.watch {
		a.endless = true
		if !cmd.Flags().Changed("timeout") {
			a.timeout = 0
		}
	}
	return a.withIAT(cmd, func(ctx context.Context, c *iat.Client) error {
		if a.watch {
			return a.watchAll(ctx, cmd, c, q)
		}
		return a.list(ctx, cmd, c, q)
	})
}

func (a *approver) list(ctx context.Context, cmd *cobra.Command, c *iat.Client, q iat.ApprovalQuery) error {
	found, err := insist(ctx, a.tell, func() ([]iat.Approval, error) { return c.Approvals(ctx, q) })
	if err != nil {
		return err
	}
	head := "AGE\tAGENT\tWHAT FOR\tID"
	if q.State != iat.Pending {
		head = "AGE\tSTATE\tBY\tAGENT\tWHAT FOR\tID"
	}
	t := a.table(cmd, head)
	for _, one := range found {
		cells := []string{age(one.Asked), one.Agent, one.What(), one.ID}
		if q.State != iat.Pending {
			cells = slices.Insert(cells, 1, string(one.State), one.By)
		}
		t.row(one, cells...)
	}
	return t.end()
}

// watchAll prints what there is and what changes, a line each: of what is decided only what was shown before, unless
// all is asked for.
func (a *approver) watchAll(ctx context.Context, cmd *cobra.Command, c *iat.Client, q iat.ApprovalQuery) error {
	p := newPrinter(cmd, a.json, false)
	shown := map[[2]string]iat.ApprovalState{}
	for one, err := range insistent(ctx, a.tell, c, q) {
		if err != nil {
			return err
		}
		key := [2]string{one.Agent, one.ID}
		was := shown[key]
		if was == one.State || was == "" && one.State != iat.Pending && !a.all && q.State == "" {
			continue
		}
		if shown[key] = one.State; one.State != iat.Pending && !a.all {
			delete(shown, key)
		}
		if err := p.approval(&one); err != nil {
			return err
		}
	}
	return nil
}

// insistent yields approvals as they change. What edges refuse for the moment is asked for again, for as long as ctx
// lasts.
func insistent(ctx context.Context, tell func(string), c *iat.Client, q iat.ApprovalQuery) func(func(iat.Approval, error) bool) {
	return func(yield func(iat.Approval, error) bool) {
		err := persist(ctx, tell, func() error {
			for one, err := range c.WatchApprovals(ctx, q) {
				if err != nil {
					return err
				}
				if !yield(one, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(iat.Approval{}, err)
		}
	}
}

// approval prints an approval on a line.
func (p *printer) approval(a *iat.Approval) error {
	if p.json {
		return p.jsonLine(a)
	}
	var l line
	state := string(a.State)
	if a.By != "" {
		state += " by " + terminal.NameOf(a.By)
	}
	l.text(fmt.Sprintf("%s  %s  %s: %s  %s", age(a.Asked), terminal.Visible(state), terminal.NameOf(a.Agent), terminal.Visible(a.What()), terminal.Visible(a.ID)), p.columns())
	l.newline()
	return l.writeTo(p.out)
}

// age returns how long something is ago that happened at a time in Unix seconds, by this machine's clock.
func age(at int64) string {
	d := max(time.Since(time.Unix(at, 0)), 0).Truncate(time.Second)
	if d >= time.Minute {
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return d.String()
}

// What may be decided.
const (
	approves = true
	denies   = false
)

func newDecide(approved bool) *cobra.Command {
	var v verb
	d := iat.Decision{Approved: approved}
	name, what := "deny", "Deny"
	if approved {
		name, what = "approve", "Approve"
	}
	cmd := &cobra.Command{
		Use:     name + " ID",
		Short:   what + " what an agent asks approval for",
		Long:    what + " what an agent asks approval for. The id is as `agora approvals` shows it; nobody decides what it has asked for itself.",
		Example: "  agora " + name + " 7f3a\n  agora " + name + " 7f3a --agent bob --note 'as we said'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.withIAT(cmd, func(ctx context.Context, c *iat.Client) error {
				a, err := insist(ctx, v.tell, func() (iat.Approval, error) { return c.Decide(ctx, args[0], d) })
				if err != nil || !v.json {
					return err
				}
				return newPrinter(cmd, true, false).jsonLine(a)
			})
		},
	}
	v.flags(cmd, waitAtMost)
	v.from(cmd, "as")
	cmd.Flags().Lookup("as").Usage = "agent id to decide as (default: whoever the credentials are for)"
	cmd.Flags().StringVar(&d.Agent, "agent", "", "agent that asks, where several have used that id")
	cmd.Flags().StringVar(&d.Note, "note", "", "why, for the agent")
	v.completeFlag(cmd, "agent", agentNames)
	v.completeApprovals(cmd)
	return cmd
}

// completeApprovals has shells complete the id of an approval that waits for a decision.
func (v *verb) completeApprovals(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return v.offer(cmd, func(ctx context.Context) (ids []string, err error) {
			cfg, err := v.iatConfig(once)
			if err != nil {
				return nil, err
			}
			c, err := iat.New(cfg)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			all, err := c.Approvals(ctx, iat.ApprovalQuery{State: iat.Pending})
			for _, a := range all {
				ids = append(ids, a.ID)
			}
			return ids, err
		})
	}
}
