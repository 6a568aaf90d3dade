package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/plot"
)

// runs is the result of several runs as JSON.
type runs struct {
	Verb string           `json:"verb"`
	Runs []loadgen.Result `json:"runs"`
}

// print prints results, for people or as JSON, and returns the status to end with.
func (o *loadOptions) print(cmd *cobra.Command, all []loadgen.Result) (err error) {
	switch {
	case !o.json:
		for _, r := range all {
			_, err = io.WriteString(cmd.OutOrStdout(), describe(r))
		}
	case len(o.rates) == 0:
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(all[0])
	default:
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(runs{o.Kind, all})
	}
	if err == nil && slices.ContainsFunc(all, loadgen.Result.Failed) {
		return exit.With(exit.Error, errors.New("not all arrived once and in order"))
	}
	return err
}

// draw draws the latency of several runs by their rates.
func draw(file, kind string, all []loadgen.Result) (err error) {
	c := plot.Chart{Title: "Latency of " + kind + " by rate", X: "messages offered a second", Y: "milliseconds"}
	p50, p99 := plot.Line{Name: "p50"}, plot.Line{Name: "p99"}
	for _, r := range all {
		if l := r.Latency; l != nil {
			p50.Points = append(p50.Points, plot.Point{X: r.Rate, Y: float64(l.P50) / 1e3})
			p99.Points = append(p99.Points, plot.Point{X: r.Rate, Y: float64(l.P99) / 1e3})
		}
	}
	c.Lines = []plot.Line{p50, p99}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return c.Write(f)
}

// describe says a result in lines.
func describe(r loadgen.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d senders, %d receivers, %d bytes, ", r.Verb, r.Senders, r.Receivers, r.Size)
	if r.Rate > 0 {
		fmt.Fprintf(&b, "%.0f/s offered", r.Rate)
	} else {
		b.WriteString("as fast as it comes through")
	}
	fmt.Fprintf(&b, ", measured for %.1f s\n", r.Seconds)
	fmt.Fprintf(&b, "  sent      %d, received %d of %d, %.0f/s\n", r.Sent, r.Received, r.Expected, r.PerSecond)
	describeLatency(&b, "latency", r.Latency)
	describeLatency(&b, "receipt", r.Receipt)
	describeLatency(&b, "  late", r.Late)
	describeUsage(&b, r.Server, r.Client)
	describeTrouble(&b, r)
	return b.String()
}

func describeUsage(w io.Writer, server *loadgen.Usage, client loadgen.Usage) {
	if server != nil {
		fmt.Fprintf(w, "  servers   %.1f µs CPU a message, %.1f s in all, %s resident", server.PerMessage, server.CPU, bytesText(server.RSS))
		if server.Heap > 0 {
			fmt.Fprintf(w, ", %s heap and stacks", bytesText(server.Heap))
		}
		fmt.Fprintln(w)
	} else {
		fmt.Fprintln(w, "  servers   not measured")
	}
	fmt.Fprintf(w, "  load      %.1f µs CPU a message\n", client.PerMessage)
}

func describeLatency(w io.Writer, name string, l *loadgen.Latency) {
	if l == nil {
		return
	}
	ms := func(us int64) float64 { return float64(us) / 1e3 }
	fmt.Fprintf(w, "  %-9s p50 %.2f ms, p90 %.2f, p99 %.2f, p99.9 %.2f, max %.2f\n", name, ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max))
}

// describeTrouble says what went otherwise than it should.
func describeTrouble(w io.Writer, r loadgen.Result) {
	for _, t := range []struct {
		n    int64
		what string
	}{
		{r.Unsent, "messages could not be sent in time: the cluster takes fewer"},
		{r.Expected - r.Received, "arrivals are missing"},
		{r.Twice, "came twice or too late"},
		{r.Missed, "were passed over"},
		{r.Gaps, "gaps were told"},
		{r.Refused, "were refused"},
		{r.Cut, "connections were lost"},
	} {
		if t.n != 0 {
			fmt.Fprintf(w, "  %d %s\n", t.n, t.what)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "  %d errors %s\n", r.Errors[code], code)
	}
	if r.First != "" {
		fmt.Fprintf(w, "  the first: %s\n", r.First)
	}
}

// bytesText says a number of bytes for people.
func bytesText(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
