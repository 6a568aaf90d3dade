package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// soakOptions are the flags of bench soak.
type soakOptions struct {
	soak.Config
	access.Credentials
	edges                   string
	duration, every, settle time.Duration
	json                    bool
}

func newSoak() *cobra.Command {
	var o soakOptions
	cmd := &cobra.Command{
		Use:   "soak --edges URL,URL",
		Short: "Send numbered messages through cuts, and count what is lost, doubled or out of order",
		Long: "Senders send messages, streams and questions to receivers, and publish into spaces, through the Go client\n" +
			"and over all edges, while connections are cut at random. Every message is numbered, and must arrive once\n" +
			"and in order once the cluster has said that it is stored. Agents and spaces are named soak-<random>…; at the\n" +
			"end they say goodbye. Ctrl-C ends the run early, and it is accounted for all the same.\n\n" +
			"Progress is told on stderr, the result on stdout. What the cluster tells to be lost (gaps), refuses, or\n" +
			"aborts is counted, and is no violation.\n\n" +
			"Exit status: 0 every promise was kept, 1 one was broken, 2 wrong usage, 4 unauthorised or forbidden,\n" +
			"6 no edge available at the start.",
		Example: "  agora bench soak --edges ws://127.0.0.1:8080,ws://127.0.0.1:8081 --duration 10m --cuts 2",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.edges, "edges", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; /ws is added to those without a path")
	o.Credentials.Flags(f, " for ids soak-*", access.ReadAgain)
	f.DurationVar(&o.duration, "duration", time.Minute, "how long to send")
	f.IntVar(&o.Senders, "senders", 4, "agents that send")
	f.IntVar(&o.Receivers, "receivers", 4, "agents that receive, and answer")
	f.IntVar(&o.Spaces, "spaces", 2, "spaces to publish into")
	f.Float64Var(&o.Rate, "rate", 200, "messages, chunks, questions and events a second, of all senders together")
	f.Float64Var(&o.Cuts, "cuts", 0, "connections to cut a second")
	f.DurationVar(&o.every, "progress", 5*time.Second, "time between two lines of progress; 0 for none")
	f.DurationVar(&o.settle, "settle", 2*time.Minute, "how long to wait at the end for receipts, and then for what is under way, before it counts as lost")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
	return cmd
}

// check tells what was asked for wrongly.
func (o *soakOptions) check() error {
	o.Edges, o.Config.Token, o.TokenSource = access.URLs(o.edges), o.Credentials.Token, o.Source()
	var err error
	if o.TLS, err = o.Trust.Config(); err != nil {
		return err
	}
	if o.duration <= 0 || o.settle <= 0 || o.every < 0 {
		return errors.New("--duration and --settle must be above 0, and --progress not below")
	}
	if o.Senders == 0 || o.Receivers == 0 || o.Rate == 0 { // which stand for defaults
		return errors.New("--senders, --receivers and --rate must be above 0")
	}
	return o.Check()
}

func (o *soakOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	r, err := soak.Start(cmd.Context(), o.Config)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: sending for %v\n", r.Name(), o.duration)
	ctx, cancel := context.WithTimeout(cmd.Context(), o.duration)
	defer cancel()
	o.watch(ctx, cmd, r)
	report, err := o.finish(cmd, r)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "agora: %v\n", err)
	}
	if err := printResult(cmd, o.json, report, describeSoak); err != nil {
		return err
	}
	if report.Failed() {
		return exit.With(exit.Error, errors.New("a promise was broken"))
	}
	return nil
}

// watch tells the progress until ctx ends.
func (o *soakOptions) watch(ctx context.Context, cmd *cobra.Command, r *soak.Run) {
	if o.every == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			progress(cmd.ErrOrStderr(), r.Progress())
		case <-ctx.Done():
			return
		}
	}
}

// finish stops sending and waits for what is under way, also when the user has ended the run.
func (o *soakOptions) finish(cmd *cobra.Command, r *soak.Run) (soak.Report, error) {
	ctx := context.WithoutCancel(cmd.Context())
	shown, over := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { o.watch(shown, cmd, r) })
	err := errors.Join(o.within(ctx, r.Stop), o.within(ctx, r.Settle))
	over()
	watcher.Wait()
	return r.Close(), err
}

// within calls f with a context that ends after --settle.
func (o *soakOptions) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.settle)
	defer cancel()
	return f(ctx)
}
