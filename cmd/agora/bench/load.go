package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/loadgen"
)

// loadOptions are the flags of the verbs that send: stream, oneshot and fanout.
type loadOptions struct {
	loadgen.Config
	place
	every time.Duration
	json  bool
	rates []float64 // one run each; --rate alone if empty
	svg   string
}

const loadHelp = "Progress is told on stderr, the result on stdout. Ctrl-C ends the run early, and what was measured is told all the same.\n\n" +
	"Latency goes from the time at which a message was meant to be sent to that at which its receiver has it, so that a sender\n" +
	"that is held up hides nothing; with --rate 0, where nothing is meant for a time, from when it was sent.\n\n" +
	"Exit status: 0 all that was sent has arrived once and in order, 1 it has not, 2 wrong usage, 4 unauthorised or forbidden,\n" +
	"6 no edge available at the start."

// command makes the command of a kind of load.
func (o *loadOptions) command(kind, short, long string) *cobra.Command {
	o.Kind = kind
	cmd := &cobra.Command{
		Use:   kind + " --url URL,URL | --embedded",
		Short: short,
		Long:  long + "\n\n" + loadHelp,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *loadOptions) flags(f *pflag.FlagSet) {
	o.place.flags(f)
	f.Float64Var(&o.Rate, "rate", 0, "messages a second, of all senders together; 0: as fast as they come through")
	f.Float64SliceVar(&o.rates, "rates", nil, "several rates, separated by commas: one run for each, one after the other")
	f.StringVar(&o.svg, "svg", "", "with --rates: file to draw the latency by rate into")
	f.IntVar(&o.Size, "size", 100, "bytes of a message's text")
	f.BoolVar(&o.Ack, "ack", false, "receivers acknowledge what they get; otherwise they are plain ones, whose pongs tell how far they are")
	f.DurationVar(&o.Warmup, "warmup", 2*time.Second, "how long to send before it is measured")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "how long to measure")
	f.DurationVar(&o.Settle, "settle", 10*time.Second, "how long to wait at the end for what is under way, before it counts as lost")
	f.DurationVar(&o.every, "progress", 2*time.Second, "time between two lines of progress; 0 for none")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
}

// check tells what was asked for wrongly.
func (o *loadOptions) check() error {
	if o.every < 0 {
		return errors.New("--progress must not be below 0")
	}
	if o.Senders < 1 || o.Receivers < 1 || o.Window < 1 || o.Size < 1 { // 0 stands for defaults
		return errors.New("there must be at least one agent of each sort, one message under way and one byte in it")
	}
	if o.svg != "" && len(o.rates) == 0 {
		return errors.New("--svg draws the latency by rate: give --rates")
	}
	for _, rate := range o.rates {
		if !(rate > 0) {
			return errors.New("--rates must be above 0")
		}
	}
	if err := o.place.check(); err != nil {
		return err
	}
	c := o.Config
	c.Edges = o.urls()
	for _, c.Rate = range slices.Concat(o.rates, []float64{o.Rate}) {
		if err := c.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *loadOptions) run(cmd *cobra.Command) error {
	var err error
	o.Access, err = o.access()
	if err := errors.Join(err, o.check()); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	loadgen.Files(uint64(o.Senders+o.Receivers) + spareFiles)
	end, err := o.open(cmd)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	defer end()
	o.Edges = o.urls()
	all, err := o.measureAll(cmd)
	if err == nil && o.svg != "" {
		err = draw(o.svg, o.Kind, all)
	}
	if err != nil {
		return exit.Failed(cmd, err)
	}
	return o.print(cmd, all)
}

// measureAll does one run after the other, until all are done or the user ends it.
func (o *loadOptions) measureAll(cmd *cobra.Command) (all []loadgen.Result, err error) {
	rates := o.rates
	if len(rates) == 0 {
		rates = []float64{o.Rate}
	}
	for _, o.Rate = range rates {
		if len(all) > 0 && cmd.Context().Err() != nil {
			return all, nil
		}
		r, err := o.measure(cmd)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// measure does one run.
func (o *loadOptions) measure(cmd *cobra.Command) (loadgen.Result, error) {
	r, err := loadgen.Start(cmd.Context(), o.Config)
	if err != nil {
		return loadgen.Result{}, err
	}
	defer r.Close()
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: sending for %v, measuring for %v\n", r.Name(), o.Warmup+o.Duration, o.Duration)
	ctx, over := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() { o.watch(ctx, cmd, r) })
	defer watcher.Wait()
	defer over()
	return r.Measure(cmd.Context(), o.servers(o.Access)), nil
}

// watch tells the progress until ctx ends.
func (o *loadOptions) watch(ctx context.Context, cmd *cobra.Command, r *loadgen.Run) {
	if o.every == 0 {
		return
	}
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	var last loadgen.Progress
	for {
		select {
		case <-tick.C:
			p := r.Progress()
			fmt.Fprintln(cmd.ErrOrStderr(), progressLine(last, p))
			last = p
		case <-ctx.Done():
			return
		}
	}
}

func progressLine(last, p loadgen.Progress) string {
	var b strings.Builder
	rate := float64(p.Received-last.Received) / max((p.Since-last.Since).Seconds(), 1e-3)
	fmt.Fprintf(&b, "%8v  sent %d  received %d  %.0f/s", p.Since.Round(100*time.Millisecond), p.Sent, p.Received, rate)
	if l := p.Latency; l != nil {
		fmt.Fprintf(&b, "  p50 %.2fms  p99 %.2fms", float64(l.P50)/1e3, float64(l.P99)/1e3)
	}
	return b.String()
}
