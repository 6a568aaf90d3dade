package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newCreate() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:   "create SPACE",
		Short: "Create a public space, if there is none of that name",
		Long: "Create a public space, if there is none of that name. The first join creates one, too, unless the cluster is set\n" +
			"up otherwise (spaces.auto-create); a space vanishes some time after its last member has left, or after\n" +
			"it was created where nobody joins it.",
		Example: "  agora space create task.build --as alice",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				if err := persist(ctx, v.tell, func() error { return c.CreateSpace(ctx, args[0]) }); err != nil {
					return err
				}
				return v.done(cmd, receiptLine{Status: "created", Space: args[0]})
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.flags(cmd, waitAtMost)
	v.from(cmd, "as")
	return cmd
}
