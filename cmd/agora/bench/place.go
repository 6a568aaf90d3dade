package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/logging"
	"github.com/agora-relay/agora/internal/loadgen"
)

// place is the cluster that a load is put on.
type place struct {
	access.Credentials
	url      string
	embedded bool
	edges    int
	pids     []int
	admins   []string
}

func (p *place) flags(f *pflag.FlagSet) {
	f.StringVar(&p.url, "url", "ws://127.0.0.1:8080", "addresses of edges, separated by commas; agents are spread over them")
	p.Credentials.Flags(f, " for ids bench-*", access.ReadOnce)
	f.BoolVar(&p.embedded, "embedded", false, "start a cluster for the run: agora dev in a process of its own, whose CPU and memory are measured")
	f.IntVar(&p.edges, "edges", 3, "edges of the embedded cluster")
	f.IntSliceVar(&p.pids, "pid", nil, "processes on this machine whose CPU and memory are measured: edges, and what else serves them")
	f.StringSliceVar(&p.admins, "admin", nil, "addresses of edges' admin ports, such as http://127.0.0.1:9100: tell their heaps, and without --pid their CPU and memory")
}

func (p *place) check() error {
	if p.embedded && p.edges < 1 {
		return errors.New("--edges must be at least 1")
	}
	if p.embedded && len(p.pids)+len(p.admins) > 0 {
		return errors.New("--pid and --admin are for clusters that run already: that of --embedded is measured by itself")
	}
	for _, at := range p.admins {
		if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no http:// or https:// address", at)
		}
	}
	return nil
}

// urls returns the addresses of the edges.
func (p *place) urls() []string { return access.URLs(p.url) }

// access returns what agents present, and how they connect by TLS.
func (p *place) access() (loadgen.Access, error) {
	token, err := p.Now()
	if err != nil {
		return loadgen.Access{}, fmt.Errorf("--token-file: %w", err)
	}
	secure, err := p.Trust.Config()
	return loadgen.Access{Token: token, TLS: secure}, err
}

// servers returns what is measured.
func (p *place) servers(a loadgen.Access) loadgen.Servers {
	return loadgen.Servers{PIDs: p.pids, Admins: p.admins, TLS: a.TLS}
}

// open starts the embedded cluster, if there is to be one. The caller calls end, unless there is an error.
func (p *place) open(cmd *cobra.Command) (end func(), err error) {
	if !p.embedded {
		return func() {}, nil
	}
	d, err := startChild(cmd.Context(), p.edges, cmd.ErrOrStderr())
	if err != nil {
		return nil, &agora.Error{Code: agora.Unavailable, Message: "the embedded cluster did not start", Cause: err}
	}
	p.url, p.pids, p.admins = strings.Join(d.urls, ","), []int{d.cmd.Process.Pid}, []string{d.admin}
	return d.end, nil
}

// child is `agora dev` in a process of its own.
type child struct {
	cmd   *exec.Cmd
	urls  []string
	admin string // of its last edge: each tells of the whole process
	out   io.Closer
}

// childTime bounds how long a cluster takes to start, and to end.
const childTime = time.Minute

var childEdge = regexp.MustCompile(`^  edge-\d+  (ws://\S+)  admin (http://\S+)$`)

// startChild returns once agents can connect.
func startChild(ctx context.Context, edges int, stderr io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &child{cmd: exec.Command(self, "dev", "--edges", strconv.Itoa(edges),
		"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "none", "--p2p-addr", "none", "--log.level", "warn", "--log.format", logging.Text)} // whatever the environment says
	d.cmd.Stderr = stderr
	apart(d.cmd)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = out
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if err := d.greeting(ctx, out, edges); err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

// greeting reads where the edges are.
func (d *child) greeting(ctx context.Context, out io.Reader, edges int) error {
	ctx, cancel := context.WithTimeout(ctx, childTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = d.cmd.Process.Kill() })() // which ends the lines
	for lines := bufio.NewScanner(out); len(d.urls) < edges; {
		if !lines.Scan() {
			return fmt.Errorf("agora dev said nothing of its edges: %w", errors.Join(ctx.Err(), lines.Err()))
		}
		if m := childEdge.FindStringSubmatch(lines.Text()); m != nil {
			d.urls, d.admin = append(d.urls, m[1]), m[2]
		}
	}
	return nil
}

// end ends the cluster, and waits for it.
func (d *child) end() {
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil { // it has ended, or this system has no signals
		_ = d.cmd.Process.Kill()
	}
	late := time.AfterFunc(childTime, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	_ = d.out.Close()
	_ = d.cmd.Wait() // how it ended changes nothing of what was measured
}
