package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/internal/loadgen/soak"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// maxShown is how many violations people are shown; JSON has a hundred.
const maxShown = 20

// progress tells in a line how far a run is.
func progress(w io.Writer, r soak.Report) {
	t := r.Total
	fmt.Fprintf(w, "%8v  stored %d  delivered %d  refused %d  unknown %d  cuts %d  reconnects %d  p50 %.1fms  p99 %.1fms  violations %d\n",
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second), t.Stored, t.Delivered, t.Refused, t.Unknown,
		r.Cuts, r.Reconnects, t.P50, t.P99, r.Violations)
}

// printResult prints what a run came to: for people, or as JSON.
func printResult[R any](cmd *cobra.Command, asJSON bool, r R, describe func(R) string) error {
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), describe(r))
	return err
}

func describeSoak(r soak.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tsent\tstored\trefused\tunknown\taborted\tdelivered\ttold\tlost\tduplicated\treordered\tp50 ms\tp99 ms\t")
	for _, kind := range []string{"message", "stream", "chunk", "request", "reply", "event"} {
		row(w, kind, r.Kinds[kind])
	}
	row(w, "total", r.Total)
	w.Flush() // into memory
	fmt.Fprintf(&b, "\n%s ran %.0f s: %d connections cut, %d reconnects, %d gaps told\n", r.Run, r.Seconds, r.Cuts, r.Reconnects, r.Gaps)
	for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "calls that failed with %s: %d\n", code, r.Errors[code])
	}
	fmt.Fprintf(&b, "violations: %d\n", r.Violations)
	for _, v := range r.Listed[:min(len(r.Listed), maxShown)] {
		fmt.Fprintf(&b, "  %s %s: %s\n", v.At.Format(time.TimeOnly), v.Kind, v.Text)
	}
	return b.String()
}

func row(w io.Writer, name string, c verify.Counts) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t\n", name, c.Sent, c.Stored, c.Refused, c.Unknown,
		c.Aborted, c.Delivered, c.Told, c.Lost, c.Duplicated, c.Reordered, c.P50, c.P99)
}
