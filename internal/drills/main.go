// Command drills installs the chart on a cluster of Kubernetes, in a namespace where Pod Security is restricted, and
// plays there what happens to clusters: rollouts, faults, losses of nodes. Numbered load runs all the while. It prints
// a table: what was lost, doubled or out of order, and who was listed without being connected.
//
// It uses kubectl and helm, and connects to Services and pods: it runs where both can be reached.
// scripts/kubernetes/run.sh brings such a cluster up and runs it there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "drills: %v\n", err)
		os.Exit(1)
	}
}

// run plays the drills that args name, and prints their table to out and what happens to progress. Its error says that
// one failed.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	c := &cluster{namespace: "agora", release: "agora", progress: progress}
	flags := flag.NewFlagSet("drills", flag.ContinueOnError)
	flags.StringVar(&c.chart, "chart", "helm/agora", "the chart's folder")
	images := flags.String("images", "drill-1,drill-2", "tags of the image, before and after the upgrade")
	only := flags.String("only", "", "names of the drills to play, separated by commas; all if empty")
	more := flags.String("set", "", "values of the chart besides its own, as helm's --set takes them")
	rate := flags.Float64("rate", 200, "messages, chunks, questions and events a second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	before, after, _ := strings.Cut(*images, ",")
	play, err := chosen(drills(c, after), *only)
	if err != nil {
		return err
	}
	if *more != "" {
		c.settings = append(c.settings, *more)
	}
	if err := c.install(ctx, before); err != nil {
		return err
	}
	t := table{}
	for _, d := range play {
		r, err := c.play(ctx, d, *rate)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", d.name, err), t.print(out))
		}
		fmt.Fprintf(progress, "%s\n", r)
		t = append(t, r)
	}
	return errors.Join(t.print(out), t.failed())
}

// chosen returns the drills with these names, in the order of all.
func chosen(all []drill, names string) (some []drill, err error) {
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, d := range all {
		if i := slices.Index(wanted, d.name); i >= 0 {
			some = append(some, d)
			wanted = slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("no drill is called %s", strings.Join(wanted, ", "))
	}
	return some, nil
}

const (
	steady = 5 * time.Second // of load before a drill, and after it
	settle = 2 * time.Minute // for what is under way at the end, before it counts as lost
	listed = 2 * time.Minute // for lists to be right: an edge's lease, the grace of a session, and some more
)

// play plays a drill under load, and returns what became of the load. An error says that the drill itself could not be
// played.
func (c *cluster) play(ctx context.Context, d drill, rate float64) (result, error) {
	fmt.Fprintf(c.progress, "== %s\n", d.name)
	service, err := c.address(ctx)
	if err != nil {
		return result{}, err
	}
	l, err := startLoad(ctx, service, rate, slog.New(slog.NewTextHandler(c.progress, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return result{}, err
	}
	defer l.close()
	if err := wait(ctx, steady); err != nil {
		return result{}, err
	}
	l.crash()
	began := time.Now()
	if err := d.play(ctx); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	if err := wait(ctx, steady); err != nil {
		return result{}, err
	}
	report, late := l.finish(ctx, settle)
	r := result{name: d.name, took: took, report: report, late: late}
	r.lists, err = c.lists(ctx, l, listed)
	return r, err
}
