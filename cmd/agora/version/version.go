// Package version says which version the program is.
package version

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that a build was told it is, by -ldflags "-X …/cmd/agora/version.release=…": an image is built
// without the history that would say it.
var release string

// coming is the release that this source is on its way to, and the version of the chart's images. A build that was told
// nothing, and that has no history either, is that of a developer.
const coming = "0.1.0"

func NewCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"version": String()})
			}
			return Print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// Print writes the line of the verb, and of the flag --version. The flag is not cobra's own: cobra writes its line by a
// template, and a program that links templates keeps every exported method of every type, which is a fifth of its size.
func Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "agora %s\n", String())
	return err
}

// String is what the build was told, the module's version, or the revision it was built from.
func String() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && s.Value != "" {
				return s.Value
			}
		}
	}
	return coming + "-dev"
}
