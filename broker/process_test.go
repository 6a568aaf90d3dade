package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// processes are nats-server processes that keep their log in files. They can be killed, all at once.
type processes struct {
	t    testing.TB
	path string
	conf []string // a file each
	urls []string
	cmds []*exec.Cmd
}

// testProcesses starts n servers; sync is their sync_interval, empty for the server's own.
func testProcesses(t testing.TB, n int, sync string) *processes {
	t.Helper()
	out, err := exec.Command("go", "tool", "-n", "nats-server").Output()
	if err != nil {
		t.Fatalf("build nats-server: %v", err)
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		t.Fatal(err)
	}
	p := &processes{t: t, path: strings.TrimSpace(string(out)), cmds: make([]*exec.Cmd, n)}
	dir := t.TempDir()
	var routes []string
	for k := range n {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[n+k]))
	}
	for k := range n {
		conf := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\nmax_payload: 8388608\njetstream { store_dir: %q", k, ports[k], filepath.Join(dir, fmt.Sprint(k)))
		if sync != "" {
			conf += ", sync_interval: " + sync
		}
		conf += " }\n"
		if n > 1 {
			conf += fmt.Sprintf("cluster { name: agora, listen: 127.0.0.1:%d, routes: [%s] }\n", ports[n+k], strings.Join(routes, ", "))
		}
		p.conf = append(p.conf, filepath.Join(dir, fmt.Sprintf("%d.conf", k)))
		p.urls = append(p.urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[k]))
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
		p.cmds[k] = exec.Command(p.path, "-c", p.conf[k])
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
	var b *Broker
	var last error
	await.True(p.t, "the log is ready", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b, last = Connect(ctx, cfg)
		return last == nil
	})
	if last != nil {
		p.t.Fatal(errors.Join(errors.New("connecting"), last))
	}
	p.t.Cleanup(b.Close)
	return b
}
