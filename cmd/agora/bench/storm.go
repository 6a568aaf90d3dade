package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/loadgen"
)

// stormOptions are the flags of bench storm.
type stormOptions struct {
	loadgen.StormConfig
	place
	json bool
}

func newBenchStorm() *cobra.Command {
	var o stormOptions
	cmd := &cobra.Command{
		Use:   "storm --url URL,URL | --embedded",
		Short: "All agents are cut off, miss parts of streams, and return at once",
		Long: "Each agent has a stream from a sender at another edge. All agents lose their connections without a word, and miss parts of\n" +
			"their streams until the cluster has stored them. Then all return at once, each where it stood: measured is when each is\n" +
			"connected again, and when it has got all that it missed. With --live, streams of other agents go on, and their latency is\n" +
			"measured while all are connected and quiet, before they are cut off, and while they return.\n\n" +
			"Steps are told on stderr, the result on stdout. Keep --missed below the records of a mailbox, and the whole below\n" +
			"session.grace.\n\n" +
			"Exit status: 0 each agent got all once and in order, 1 one did not, 2 wrong usage, 4 unauthorised or forbidden,\n" +
			"5 a step took longer than --settle, 6 no edge available at the start.",
		Example: "  agora bench storm --embedded --agents 1000 --missed 100",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.place.flags(f)
	f.IntVar(&o.Agents, "agents", 1000, "agents that are cut off and return")
	f.IntVar(&o.Senders, "senders", 0, "agents that stay, and send; 0: one for 200 agents")
	f.IntVar(&o.Missed, "missed", 100, "parts of its stream that each agent misses")
	f.IntVar(&o.Size, "size", 100, "bytes of a part's text")
	f.IntVar(&o.Dialing, "dialing", 0, "agents that connect at a time; 0: all at once")
	f.DurationVar(&o.Spread, "spread", 0, "over which agents begin to return, evenly; 0: all in the same instant")
	f.IntVar(&o.Live, "live", 0, "streams of other agents, which go on meanwhile")
	f.Float64Var(&o.LiveRate, "live-rate", 1000, "chunks a second of all these")
	f.DurationVar(&o.Calm, "live-calm", 5*time.Second, "how long these are measured before the others are cut off, once all have been connected for as long")
	f.DurationVar(&o.Settle, "settle", 30*time.Second, "how long each step may take")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
	return cmd
}

func (o *stormOptions) run(cmd *cobra.Command) error {
	var err error
	o.Edges = o.urls()
	o.Access, err = o.access()
	if err := errors.Join(err, o.place.check(), o.Check()); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	loadgen.Files(uint64(o.Agents+2*o.Live)*2 + spareFiles)
	end, err := o.open(cmd)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	defer end()
	o.Edges = o.urls()
	r, err := loadgen.Storm(cmd.Context(), o.StormConfig, o.servers(o.Access), func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), step) })
	if err != nil {
		return exit.Failed(cmd, err)
	}
	err = printResult(cmd, o.json, r, describeStorm)
	if err == nil && r.Failed() {
		return exit.With(exit.Error, errors.New("not all arrived once and in order"))
	}
	return err
}

func describeStorm(r loadgen.StormResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "storm: %d agents, each missed %d parts of %d bytes\n", r.Agents, r.Missed, r.Size)
	fmt.Fprintf(&b, "  returned  %d, caught up %d, in %.2f s; received %d of %d, %.0f/s\n",
		r.Returned, r.Whole, r.Seconds, r.Received, r.Expected, r.PerSecond)
	describeLatency(&b, "connected", r.Connected)
	describeLatency(&b, "caught up", r.CaughtUp)
	if l := r.Live; l != nil {
		fmt.Fprintf(&b, "  %d streams of others, %.0f chunks/s, lost %d\n", l.Streams, l.Rate, l.Lost)
		describeLatency(&b, "before", l.Calm)
		describeLatency(&b, "meanwhile", l.Storm)
	}
	describeUsage(&b, r.Server, r.Client)
	describeTrouble(&b, loadgen.Result{
		Expected: r.Expected, Received: r.Received, Twice: r.Twice, Missed: r.Skipped, Gaps: r.Gaps,
		Cut: r.Cut, Errors: r.Errors, First: r.First,
	})
	return b.String()
}
