package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/pause"
)

// crowd is connections that are held, here or by other processes.
type crowd interface {
	Lost() int64 // connections that have ended by themselves; asked once, at the end
	Close()      // says goodbye for all
}

// measure connects the agents and looks at the servers before, after and meanwhile.
func (o *idleOptions) measure(cmd *cobra.Command) (idleResult, error) {
	ctx, err := cmd.Context(), cmd.ErrOrStderr()
	o.Name = "bench-" + strings.ToLower(rand.Text()[:8])
	pause.For(ctx, o.warmup)
	before := o.servers(o.Access).Usage()
	fmt.Fprintf(err, "%s: connecting %d agents\n", o.Name, o.Agents)
	began := time.Now()
	held, failure := o.gather(ctx, err)
	if failure != nil {
		return idleResult{}, failure
	}
	defer held.Close()
	took := time.Since(began).Seconds()
	there := o.servers(o.Access).Usage()
	fmt.Fprintf(err, "connected in %.1f s; measuring for %v\n", took, o.duration)
	pause.For(ctx, o.warmup)
	quiet, since := o.servers(o.Access).Usage(), time.Now()
	pause.For(ctx, o.duration)
	after, seconds := o.servers(o.Access).Usage(), time.Since(since).Seconds()
	r := idleResult{
		Verb: "idle", Agents: o.Agents, Processes: o.processes, Connect: took, PerSecond: float64(o.Agents) / took,
		Seconds: seconds, Lost: held.Lost(),
	}
	if before != nil && there != nil && quiet != nil && after != nil {
		n := float64(o.Agents)
		cpu := (after.CPU - quiet.CPU).Seconds()
		r.Server = &idleCost{
			Before: before.RSS, After: after.RSS, Per: float64(after.RSS-before.RSS) / n,
			ConnectCPU: float64((there.CPU - before.CPU).Microseconds()) / n, CPU: cpu, Percent: 100 * cpu / seconds,
		}
		if before.Heap > 0 && after.Heap > 0 {
			r.Server.HeapBefore, r.Server.HeapAfter, r.Server.HeapPer = before.Heap, after.Heap, float64(after.Heap-before.Heap)/n
		}
	}
	return r, nil
}

// gather connects all agents, from here or from other processes.
func (o *idleOptions) gather(ctx context.Context, stderr io.Writer) (crowd, error) {
	if o.processes == 1 {
		return loadgen.Gather(ctx, o.CrowdConfig)
	}
	all := &workers{}
	for i := range o.processes {
		first := o.Agents * i / o.processes
		if err := all.start(o, first, o.Agents*(i+1)/o.processes-first, stderr); err != nil {
			all.Close()
			return nil, err
		}
	}
	if err := all.connected(ctx); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// workers are processes that hold connections.
type workers struct {
	all  []*worker
	lost int64
	over bool
}

type worker struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

// start starts one more.
func (w *workers) start(o *idleOptions, first, agents int, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	one := &worker{cmd: exec.Command(self, "bench", "idle", "--worker", "--name", o.Name, "--url", strings.Join(o.Edges, ","),
		"--first", strconv.Itoa(first), "--agents", strconv.Itoa(agents), "--processes", "1",
		"--dialing", strconv.Itoa(max(1, o.Dialing/o.processes)), "--token-file", "", // it gets the token itself
		"--ca", o.CA, "--client-cert", o.Cert, "--client-key", o.Key)}
	one.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "AGORA_PID=") || strings.HasPrefix(s, "AGORA_EMBEDDED=")
	}), "AGORA_TOKEN="+o.Access.Token)
	one.cmd.Stderr = stderr
	apart(one.cmd)
	out, err := one.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	one.out = bufio.NewScanner(out)
	if one.in, err = one.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := one.cmd.Start(); err != nil {
		return err
	}
	w.all = append(w.all, one)
	return nil
}

// connected waits until all of them are; where one ends instead, its exit status is the error's.
func (w *workers) connected(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		for _, one := range w.all {
			_ = one.cmd.Process.Kill() // which ends its lines
		}
	})()
	for _, one := range w.all {
		if one.out.Scan() {
			continue
		}
		_ = one.cmd.Wait() // it has said why
		if ctx.Err() != nil {
			return ctx.Err()
		}
		status := max(one.cmd.ProcessState.ExitCode(), exit.Error)
		return exit.With(status, errors.New("a process of agents ended before they were connected"))
	}
	return nil
}

// Lost has all say goodbye, and returns how many connections had ended before.
func (w *workers) Lost() int64 {
	w.Close()
	return w.lost
}

// Close ends all processes and waits for them.
func (w *workers) Close() {
	if w.over {
		return
	}
	w.over = true
	for _, one := range w.all {
		_ = one.in.Close() // tells it to end
	}
	for _, one := range w.all {
		late := time.AfterFunc(childTime, func() { _ = one.cmd.Process.Kill() })
		for one.out.Scan() {
			if n, err := strconv.ParseInt(one.out.Text(), 10, 64); err == nil {
				w.lost += n
			}
		}
		_ = one.cmd.Wait() // it has said what counts
		late.Stop()
	}
}

// hold is what a worker does: it says when all are connected, and at the end how many connections were lost.
func (o *idleOptions) hold(cmd *cobra.Command) error {
	c, err := loadgen.Gather(cmd.Context(), o.CrowdConfig)
	if err != nil {
		return exit.Failed(cmd, err)
	}
	defer c.Close()
	fmt.Fprintln(cmd.OutOrStdout(), "connected")
	if _, err := io.Copy(io.Discard, cmd.InOrStdin()); err != nil {
		return errors.Join(err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), c.Lost())
	return err
}
