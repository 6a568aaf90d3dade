package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// secretFlags name the files of secrets that a verb presents, or answers by.
var secretFlags = []string{"token-file", "client-key", "p2p-key", "admin.token-file"}

// warnsReadable has a command that does something call warnReadable first.
func warnsReadable(cmd *cobra.Command) {
	do := cmd.RunE
	if do == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		warnReadable(cmd)
		return do(cmd, args)
	}
}

// warnReadable warns of files of secrets that every user of the machine can read or change. The verb runs nevertheless:
// the secret is its user's own.
func warnReadable(cmd *cobra.Command) {
	for _, name := range secretFlags {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			continue
		}
		if err := config.Exposed(f.Value.String()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), terminal.Program+": --%s: %s\n", name, terminal.Visible(err.Error()))
		}
	}
}
