package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/logging"
)

// configFlag names the file of settings.
const configFlag = "config"

func FileFlag(f *pflag.FlagSet) {
	f.String(configFlag, "", "file of settings, in YAML")
}

const ConfigHelp = "Every setting of `agora edge` can be given, from the strongest to the weakest:\n" +
	"  as a flag        --session.grace 5s\n" +
	"  by environment   AGORA_SESSION_GRACE=5s\n" +
	"  in the file      session.grace: 5s, or grace: 5s below session:, in what --config or AGORA_CONFIG names"

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, show or explain the settings of an edge",
		Long:  "Check or show the settings that `agora edge` would run with.\n\n" + ConfigHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheck(), newConfigShow(), newConfigReference())
	return cmd
}

// settingsCommand makes a command that takes the settings of an edge and does something
// with them, whatever faults there are in what environment and file say.
func settingsCommand(cmd *cobra.Command, do func(cmd *cobra.Command, o *Edge, from origins, faults error) error) *cobra.Command {
	var o Edge
	o.Flags(cmd.Flags())
	cmd.Args = cobra.NoArgs
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // faults are this command's to tell
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, err := Fill(cmd.Flags(), os.LookupEnv)
		return do(cmd, &o, from, errors.Join(err, refuseStrays(cmd, os.Environ())))
	}
	return cmd
}

func newConfigCheck() *cobra.Command {
	return settingsCommand(&cobra.Command{
		Use:   "check",
		Short: "Check that an edge could run with these settings",
		Long: "Check the settings of an edge, one by one and together, and that the files they name can be read. Nothing is\n" +
			"connected to. Each fault is told in a sentence, in JSON where log.format is json, as is each id in the policy that no\n" +
			"agent can have, which is no fault.\n\n" + ConfigHelp +
			"\n\nExit status: 0 all is well, 1 there are faults, 2 wrong usage.",
		Example: "  agora config check --config agora.yaml",
	}, func(cmd *cobra.Command, o *Edge, _ origins, faults error) error {
		faults = errors.Join(faults, o.Check(), o.checkFiles())
		if o.Log.Format == logging.JSON {
			return tellJSON(cmd, faults, o.doubts())
		}
		for _, line := range linesOf(o.doubts()) {
			fmt.Fprintf(cmd.ErrOrStderr(), "agora: warning: policy: %s\n", line)
		}
		if err := tell(cmd, faults); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "the settings are valid")
		return err
	})
}

func newConfigShow() *cobra.Command {
	var asJSON bool
	cmd := settingsCommand(&cobra.Command{
		Use:   "show",
		Short: "Show every setting, its value and where that comes from",
		Long: "Show every setting of an edge, its value and where that comes from. Secrets are not shown.\n\n" + ConfigHelp +
			"\n\nExit status: 0 all is well, 1 there are faults, 2 wrong usage.",
		Example: "  agora config show --config agora.yaml",
	}, func(cmd *cobra.Command, _ *Edge, from origins, faults error) error {
		if err := show(cmd, from, asJSON); err != nil {
			return err
		}
		return tell(cmd, faults)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object per setting")
	return cmd
}

// tell prints faults, a line each, and makes them an exit status.
func tell(cmd *cobra.Command, faults error) error {
	if faults == nil {
		return nil
	}
	for _, line := range linesOf(faults) {
		fmt.Fprintf(cmd.ErrOrStderr(), "agora: %s\n", line)
	}
	return exit.With(exit.Error, faults)
}

// linesOf returns errors that are joined, each by its text.
func linesOf(all error) []string {
	if all == nil {
		return nil
	}
	return strings.Split(all.Error(), "\n")
}

// tellJSON logs in JSON what is doubtful, and that there are no faults, or each fault, which makes an exit status.
func tellJSON(cmd *cobra.Command, faults, doubts error) error {
	log := slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
	for _, line := range linesOf(doubts) {
		log.Warn("the policy names an agent that can't be", "err", line)
	}
	if faults == nil {
		log := slog.New(slog.NewJSONHandler(cmd.OutOrStdout(), nil))
		log.Info("the settings are valid")
		return nil
	}
	for _, line := range linesOf(faults) {
		log.Error("the settings have a fault", "err", line)
	}
	return exit.With(exit.Error, faults)
}

// setting is a line of `agora config show`.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func show(cmd *cobra.Command, from origins, asJSON bool) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	lines := json.NewEncoder(cmd.OutOrStdout())
	lines.SetEscapeHTML(false) // an address keeps its "&"
	if !asJSON {
		fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	}
	for _, name := range SettingNames(EdgeFlags()) {
		s := setting{name, cmd.Flags().Lookup(name).Value.String(), from.Of(name)}
		if !asJSON {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Value, s.Origin)
		} else if err := lines.Encode(s); err != nil {
			return err
		}
	}
	return w.Flush()
}
