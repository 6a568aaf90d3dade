package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agora-relay/agora/cmd/agora/bench"
	"github.com/agora-relay/agora/cmd/agora/cli"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/serve"
	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/spf13/cobra"
)

// run is the whole program: it returns the exit status. The first SIGINT or
// SIGTERM ends ctx, so that what runs can end in order; a second one kills.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root, started := newRoot(), false
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		err := before(cmd, args)
		started = err == nil
		return err
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return status.ExitCode()
	}
	tellFatal(stderr, cmd, args, err)
	if !started {
		return 2 // it was not understood
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "agora",
		Short: "A relay cluster for agents",
		Long: "Agora carries messages, streams and space events between agents, whatever edge they are on.\n" +
			"Every flag can be set by the environment too: --session.grace is AGORA_SESSION_GRACE. Those of edges can also\n" +
			"stand in a file: see `agora config --help`.",
		Args:              cobra.NoArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return config.FillCommand(cmd) },
	}
	said := root.Flags().BoolP("version", "v", false, "version for agora")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *said {
			return version.Print(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	dev := serve.NewDev()
	dev.AddCommand(cli.NewDevVerbs()...)
	root.AddCommand(dev, serve.NewEdge(), config.NewCommand(), newToken(), serve.NewHealth(), version.NewCommand())
	cli.AddCommands(root)
	root.SetHelpCommand(newHelp(root))
	load := bench.NewCommand()
	load.GroupID = cli.AgentGroup
	root.AddCommand(load)
	return root
}
