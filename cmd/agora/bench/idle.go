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

// spareFiles are open in a process beside its agents' connections.
const spareFiles = 1024

// idleOptions are the flags of bench idle.
type idleOptions struct {
	loadgen.CrowdConfig
	place
	processes        int
	warmup, duration time.Duration
	json, worker     bool
}

func newBenchIdle() *cobra.Command {
	var o idleOptions
	cmd := &cobra.Command{
		Use:   "idle --url URL,URL --pid PID | --embedded",
		Short: "Connections that say nothing: the memory and CPU they cost",
		Long: "Connects agents, which answer pings and say nothing else, and measures the servers' memory before and after, and the CPU\n" +
			"that they take meanwhile. Beyond what one process may open, or to have more processors connect, give --processes. Where\n" +
			"edges are on this machine, each ten thousand agents have a loopback address of their own.\n\n" +
			"Exit status: 0 all agents stayed connected, 1 not, 2 wrong usage, 4 unauthorised or forbidden, 6 no edge available.",
		Example: "  agora bench idle --embedded --agents 10000 --processes 2",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.place.flags(f)
	f.IntVar(&o.Agents, "agents", 1000, "agents that connect")
	f.IntVar(&o.Dialing, "dialing", 64, "agents that connect at a time, of all processes together")
	f.IntVar(&o.processes, "processes", 1, "processes that hold their connections")
	f.DurationVar(&o.warmup, "warmup", 3*time.Second, "how long to wait before it is measured: before the agents connect, and after")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure the CPU")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
	f.BoolVar(&o.worker, "worker", false, "hold connections for another process until stdin ends")
	f.StringVar(&o.Name, "name", "", "with --worker: what the agents' ids begin with")
	f.IntVar(&o.First, "first", 0, "with --worker: number of the first agent")
	for _, name := range []string{"worker", "name", "first"} {
		_ = f.MarkHidden(name) // it is there
	}
	return cmd
}

// prepare says where and how agents connect, and tells what was asked for wrongly.
func (o *idleOptions) prepare() (err error) {
	o.Edges = o.urls()
	o.Access, err = o.access()
	return errors.Join(err, o.check())
}

func (o *idleOptions) check() error {
	if o.processes < 1 || o.processes > o.Agents {
		return errors.New("--processes must be at least 1, and not more than there are agents")
	}
	if o.warmup < 0 || o.duration <= 0 {
		return errors.New("--duration must be above 0, and --warmup not below")
	}
	return errors.Join(o.place.check(), o.Check())
}

// enough tells when a process may not open as many files as the connections need.
func (o *idleOptions) enough(may uint64) error {
	need, who := o.Agents/o.processes+64, "each of the processes that connect"
	if o.embedded {
		need, who = o.Agents+spareFiles/2, "the embedded cluster"
	}
	if may >= uint64(need) {
		return nil
	}
	return fmt.Errorf("%s needs %d open files and may have %d: raise the limit (ulimit -n), or have fewer --agents", who, need, may)
}

func (o *idleOptions) run(cmd *cobra.Command) error {
	if err := o.prepare(); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if err := o.enough(loadgen.Files(uint64(o.Agents) + spareFiles)); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if o.worker {
		return o.hold(cmd)
	}
	end, err := o.open(cmd)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	defer end()
	o.Edges = o.urls()
	r, err := o.measure(cmd)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	err = printResult(cmd, o.json, r, idleResult.String)
	if err == nil && r.Lost > 0 {
		return exit.With(exit.Error, errors.New("connections were lost"))
	}
	return err
}

// idleResult is what bench idle tells.
type idleResult struct {
	Verb      string    `json:"verb"`
	Agents    int       `json:"agents"`
	Processes int       `json:"processes"`
	Connect   float64   `json:"connect_s"` // until all were connected
	PerSecond float64   `json:"connects_per_s"`
	Seconds   float64   `json:"duration_s"` // in which they said nothing
	Lost      int64     `json:"lost_connections"`
	Server    *idleCost `json:"server"` // null: not measured
}

// idleCost is what idle connections cost the servers.
type idleCost struct {
	Before     int64   `json:"rss_bytes_before"`
	After      int64   `json:"rss_bytes"`
	Per        float64 `json:"rss_bytes_per_connection"`
	HeapBefore int64   `json:"heap_bytes_before,omitempty"` // heap and stacks in use
	HeapAfter  int64   `json:"heap_bytes,omitempty"`
	HeapPer    float64 `json:"heap_bytes_per_connection,omitempty"`
	ConnectCPU float64 `json:"connect_cpu_us"` // for each
	CPU        float64 `json:"cpu_s"`          // while idle
	Percent    float64 `json:"cpu_percent"`    // of one processor, while idle
}

func (r idleResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "idle: %d agents of %d processes\n", r.Agents, r.Processes)
	fmt.Fprintf(&b, "  connected in %.1f s, %.0f/s; %d connections were lost\n", r.Connect, r.PerSecond, r.Lost)
	s := r.Server
	if s == nil {
		b.WriteString("  servers   not measured\n")
		return b.String()
	}
	fmt.Fprintf(&b, "  resident  %s before, %s after: %s each\n", bytesText(s.Before), bytesText(s.After), bytesText(int64(s.Per)))
	if s.HeapAfter > 0 {
		fmt.Fprintf(&b, "  heap      %s before, %s after: %s each\n", bytesText(s.HeapBefore), bytesText(s.HeapAfter), bytesText(int64(s.HeapPer)))
	}
	fmt.Fprintf(&b, "  CPU       %.0f µs for each to connect; %.1f %% of a processor in %.0f s of silence\n", s.ConnectCPU, s.Percent, r.Seconds)
	return b.String()
}
