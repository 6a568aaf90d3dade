// Command bench compares Agora with what others would use in its place, side by
// side: the same load from the same client code, the same machine, one run.
//
//	go run . -runs 5
//	go run . -only agora-r1,core -load saturated
//	go run . -list
//
// It starts and stops every system itself. docs/bench.md says what the
// figures mean and how each client writes and reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agora-relay/agora/bench/internal/measure"
	"github.com/agora-relay/agora/bench/internal/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are what the command line says.
type options struct {
	cfg                 measure.Config
	runs, procs         int
	only, loads         string
	jsonFile, markdown  string
	module, cache, data string
	list, update        bool
	baseline            string
	tolerance           float64
}

// run is the command; it returns its exit status: 2 for wrong usage, 1 for whatever else went wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	p, err := o.plan()
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	if o.list {
		list(stdout)
		return 0
	}
	fmt.Fprintf(stderr, "%d runs of %d loads on %d systems: about %v\n", o.runs, len(p.loads), len(p.systems), p.estimate().Round(10*time.Second))
	t := &system.Tools{Module: o.module, Cache: o.cache, Procs: o.procs}
	report, err := p.run(ctx, t, stderr)
	if err = errors.Join(err, report.save(o, stdout)); err == nil { // what there is, is shown also after Ctrl-C
		err = report.guard(o, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.runs, "runs", 1, "how often everything is measured; tables show medians")
	f.IntVar(&o.procs, "procs", 0, "GOMAXPROCS of every server written in Go, of whatever system (default as they choose)")
	f.StringVar(&o.only, "only", "", "systems, separated by commas; the beginning of a name stands for all that begin so (default all)")
	f.StringVar(&o.loads, "load", "", "loads, like -only; all for every one (default the main ones, see -list)")
	f.BoolVar(&o.list, "list", false, "list systems and loads")
	f.DurationVar(&o.cfg.Warm, "warm", time.Second, "how long a load runs before it is measured")
	f.DurationVar(&o.cfg.Time, "time", 3*time.Second, "how long it is measured")
	f.IntVar(&o.cfg.Size, "size", 100, "bytes of a chunk")
	f.IntVar(&o.cfg.Window, "window", 64, "chunks under way per stream, events under way per space")
	f.DurationVar(&o.cfg.Patience, "patience", 20*time.Second, "what has not arrived when nothing arrived for so long is lost")
	f.StringVar(&o.jsonFile, "json", "", "file for everything that was measured")
	f.StringVar(&o.markdown, "markdown", "", "file for the tables in Markdown")
	f.StringVar(&o.baseline, "baseline", "", "file of ratios to the first system, which those measured now may not be worse than")
	f.Float64Var(&o.tolerance, "tolerance", 0.33, "by which share they may be")
	f.BoolVar(&o.update, "update", false, "write the baseline instead")
	f.StringVar(&o.module, "module", "..", "folder of Agora's module, which is built")
	f.StringVar(&o.cache, "cache", filepath.Join(cache, "agora-bench"), "folder for what is built and installed")
	f.StringVar(&o.data, "data", "", "folder for what servers store (default that for temporary files)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "bench: what is %q?\n", f.Arg(0))
		return o, errors.New("too many arguments")
	}
	return o, nil
}

func list(w io.Writer) {
	fmt.Fprintln(w, "Systems:")
	for _, k := range system.Kinds {
		fmt.Fprintf(w, "  %-15s %s; keeps: %s\n", k.Name, k.About, k.Keeps)
	}
	fmt.Fprintln(w, "Loads (* unless told otherwise):")
	for _, l := range loads() {
		star := " "
		if l.main {
			star = "*"
		}
		fmt.Fprintf(w, "%s %-15s %s\n", star, l.name, l.about)
	}
}
