// Package bench has the verbs that put a cluster under load and measure it: `agora bench`.
package bench

import (
	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
)

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put a cluster under load and measure it",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchStream(), newBenchOneShot(), newBenchFanOut(), newBenchIdle(), newBenchStorm(), newSoak())
	cmd.SetFlagErrorFunc(exit.WrongUsage) // the verbs inherit it
	for _, c := range append(cmd.Commands(), cmd) {
		c.Args = func(cmd *cobra.Command, args []string) error { return exit.WrongUsage(cmd, cobra.NoArgs(cmd, args)) }
	}
	return cmd
}
