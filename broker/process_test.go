package broker

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// serverConf names the configuration file with which this program is a NATS server and nothing else: building nats-server
// itself takes longer than all tests.
const serverConf = "AGORA_TEST_NATS"

// serve is a NATS server until it is killed, or whoever started it is gone.
func serve(conf string) {
	opts, err := server.ProcessConfigFile(conf)
	if err != nil {
		panic(err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		panic(err)
	}
	srv.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// processes are NATS servers, a process each, that keep their log in files. They can be killed, all at once.
type processes struct {
	t    testing.TB
	conf []string // a file each
	urls []string
	cmds []*exec.Cmd
	ends []io.Closer // a server is not to outlive this
}

// testProcesses starts n servers; sync is their sync_interval, empty for the server's own.
func testProcesses(t testing.TB, n int, sync string) *processes {
	t.Helper()
	ports := servers.Ports(t, 2*n)
	p := &processes{t: t, cmds: make([]*exec.Cmd, n), ends: make([]io.Closer, n)}
	dir := t.TempDir()
	var routes []string
	for k := range n {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports+n+k))
	}
	for k := range n {
		conf := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\nmax_payload: 8388608\njetstream { store_dir: %q", k, ports+k, filepath.Join(dir, fmt.Sprint(k)))
		if sync != "" {
			conf += ", sync_interval: " + sync
		}
		conf += " }\n"
		if n > 1 {
			conf += fmt.Sprintf("cluster { name: agora, listen: 127.0.0.1:%d, routes: [%s] }\n", ports+n+k, strings.Join(routes, ", "))
		}
		p.conf = append(p.conf, filepath.Join(dir, fmt.Sprintf("%d.conf", k)))
		p.urls = append(p.urls, fmt.Sprintf("nats://127.0.0.1:%d", ports+k))
		if err := os.WriteFile(p.conf[k], []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(p.kill)
	p.start()
	return p
}

// start starts those that do not run.
func (p *processes) start() {
	p.t.Helper()
	for k, cmd := range p.cmds {
		if cmd != nil {
			continue
		}
		self, err := os.Executable()
		if err != nil {
			p.t.Fatal(err)
		}
		p.cmds[k] = exec.Command(self)
		p.cmds[k].Env = append(os.Environ(), serverConf+"="+p.conf[k])
		if p.ends[k], err = p.cmds[k].StdinPipe(); err != nil {
			p.t.Fatal(err)
		}
		if err := p.cmds[k].Start(); err != nil {
			p.t.Fatal(err)
		}
		addr := strings.TrimPrefix(p.urls[k], "nats://")
		await.True(p.t, "nats-server listens", func() bool {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
}

// kill ends all of them at once, without a chance to write anything more, and waits for their ends.
func (p *processes) kill() {
	for _, cmd := range p.cmds {
		if cmd != nil {
			_ = cmd.Process.Kill() // one that has ended needs none
		}
	}
	for k, cmd := range p.cmds {
		if cmd != nil {
			_ = cmd.Wait() // killed: it says no more
			p.ends[k].Close()
			p.cmds[k] = nil
		}
	}
}

// broker connects, once the servers have agreed on who leads.
func (p *processes) broker(change func(*Config)) *Broker {
	p.t.Helper()
	cfg := Config{URL: strings.Join(p.urls, ","), Replicas: len(p.urls), ShardBytes: 1 << 30, MaxRecords: 1 << 20}
	if change != nil {
		change(&cfg)
	}
	b, err := Connect(await.Context(p.t), cfg)
	if err != nil {
		p.t.Fatalf("Connect: %v", err)
	}
	p.t.Cleanup(b.Close)
	return b
}
