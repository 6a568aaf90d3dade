package main

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Put a cluster under load and measure it",
		GroupID: clientGroup,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { return usageError(cmd, cobra.NoArgs(cmd, args)) }
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(cmd, err) })
	cmd.AddCommand(newBenchStream(), newBenchOneShot(), newBenchFanOut(), newBenchIdle(), newBenchStorm(), newSoak())
	return cmd
}
