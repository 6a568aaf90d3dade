package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/edge/auth"
)

func newToken() *cobra.Command {
	var agents, roles []string
	var tenant string
	var system bool
	var file string
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Make a random token and the line that a token file needs for it",
		Long: "Make a random token for the principal NAME. It is shown this once and kept nowhere. The line that belongs into the\n" +
			"file of --auth file:PATH is printed behind it, or with --append put there, so that nothing but the token is printed.\n" +
			"What the file says already stays; if there is none it is made, for its owner alone. Edges read it within a second.",
		Example: "  agora token jane --agents 'jane,jane/*' --append tokens",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(agents) == 0 {
				agents = args
			}
			token, line, err := auth.NewToken(auth.Line{Name: args[0], Agents: agents, Tenant: tenant, Roles: roles, System: system})
			if err != nil {
				return err
			}
			if file == "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", token, line)
				return err
			}
			if err := auth.AppendLine(file, line); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&agents, "agents", nil, "ids that it may be; '*' at the end stands for any rest (default NAME)")
	f.StringVar(&tenant, "tenant", "", "tenant that it belongs to")
	f.StringSliceVar(&roles, "roles", nil, "roles that it has in the rules")
	f.StringVar(&file, "append", "", "file to put the line into, rather than to print it")
	f.BoolVar(&system, "system", false, "may publish to system spaces")
	return cmd
}
