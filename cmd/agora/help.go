package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
)

// newHelp returns the command help, which fails where there is no such command.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "Say all of a command: `agora help listen` is what `agora listen --help` says.",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if cmd, _, err := root.Find(args); err == nil {
				for _, sub := range cmd.Commands() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return exit.WrongUsage(help, fmt.Errorf("there is no command `agora %s`; `agora help` lists all", strings.Join(args, " ")))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
