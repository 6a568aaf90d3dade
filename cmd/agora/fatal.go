package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/agora-relay/agora/cmd/agora/serve"
	"github.com/spf13/cobra"
)

// tellFatal tells why the program ends, a line for each fault: in JSON where that is the format of its log.
func tellFatal(stderr io.Writer, cmd *cobra.Command, args []string, err error) {
	var log *slog.Logger
	if logsJSON(cmd, args) {
		log = slog.New(slog.NewJSONHandler(stderr, nil))
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	for line := range strings.SplitSeq(text, "\n") {
		if log != nil {
			log.Error("agora "+cmd.Name()+" has failed", "err", line)
			continue
		}
		fmt.Fprintf(stderr, "agora: %s\n", line)
	}
}

// logsJSON reports whether a command has a log that was to be JSON, however little of what it was told makes sense.
func logsJSON(cmd *cobra.Command, args []string) bool {
	if cmd == nil || cmd.Annotations[serve.HasLog] == "" {
		return false
	}
	format := cmd.Flags().Lookup(config.FormatFlag)
	if i := slices.Index(args, "--"+config.FormatFlag); i >= 0 && i+1 < len(args) && !format.Changed {
		return args[i+1] == logging.JSON // it stands behind a flag that was not understood
	}
	if slices.Contains(args, "--"+config.FormatFlag+"="+logging.JSON) {
		return true
	}
	_, _ = config.Fill(cmd.Flags(), os.LookupEnv) // its faults were told
	return format.Value.String() == logging.JSON
}
