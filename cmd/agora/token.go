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
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Make a random token and the line that a token file needs for it",
		Long: "Make a random token for the principal NAME. The first line printed is the token: it is shown\n" +
			"this once and kept nowhere. The second one belongs into the file of --auth file:PATH.",
		Example: "  agora token jane --agents 'jane,jane/*'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(agents) == 0 {
				agents = args
			}
			token, line, err := auth.NewToken(auth.Line{Name: args[0], Agents: agents, Tenant: tenant, Roles: roles, System: system})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", token, line)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&agents, "agents", nil, "ids that it may be; '*' at the end stands for any rest (default NAME)")
	f.StringVar(&tenant, "tenant", "", "tenant that it belongs to")
	f.StringSliceVar(&roles, "roles", nil, "roles that it has in the rules")
	f.BoolVar(&system, "system", false, "may publish to system spaces")
	return cmd
}
