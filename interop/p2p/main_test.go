//go:build interop

// Package p2p has peers of js-libp2p speak to real edges at the libp2p door, and through them to each other and to
// peers of go-libp2p: they ask for cards, hand off requests, reserve places, and are reached directly, through one edge
// and across two. What is missing fails the test: scripts/interop.sh installs it.
package p2p

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installed is where scripts/interop.sh puts libraries of other languages.
const installed = "../../bin/interop/p2p/node/node_modules"

// cluster is three edges, and where peers reach each.
type cluster struct {
	*agoratest.DevProcess
	tcp, ws []string // whole multiaddresses
}

// start starts a cluster of three edges, which know of each other.
func start(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := &cluster{DevProcess: agoratest.StartDev(t, append([]string{"--edges", "3"}, flags...)...)}
	if len(c.URLs) != 3 {
		t.Fatalf("agora dev has the edges %v", c.URLs)
	}
	for k, url := range c.URLs {
		await.True(t, "the edge knows of all", func() bool {
			var list struct {
				Edges []struct{ Addresses []string }
			}
			get(t, url+"/p2p", &list)
			if len(list.Edges) == 3 && len(c.tcp) == k {
				for _, a := range list.Edges[0].Addresses { // its own
					if strings.Contains(a, "/ws/") {
						c.ws = append(c.ws, a)
					} else {
						c.tcp = append(c.tcp, a)
					}
				}
			}
			return len(list.Edges) == 3
		})
	}
	if len(c.tcp) != 3 || len(c.ws) != 3 {
		t.Fatalf("edges are reached at %v and %v", c.tcp, c.ws)
	}
	return c
}

// get gets JSON.
func get(t *testing.T, url string, into any) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, r.Status, err)
	}
}

// script is where sources in JavaScript lie beside the libraries, so that Node finds these, and the Node that runs
// them.
type script struct{ node, dir string }

func scripts(t *testing.T) script {
	t.Helper()
	modules, err := filepath.Abs(installed)
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "libp2p/package.json"))
	}
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	dir := t.TempDir()
	sources, err := filepath.Glob("*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range sources {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, from), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return script{nodeOf(t, modules), dir}
}

// nodeOf returns the Node that is installed beside the libraries, which need a newer one than many systems have; that
// of the system where there is none for its processor.
func nodeOf(t *testing.T, modules string) string {
	t.Helper()
	own := filepath.Join(modules, ".bin/node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	return path
}

// command returns a script as it is run. It is killed with ctx.
func (s script) command(ctx context.Context, name string, args ...string) (cmd *exec.Cmd, said, failed *strings.Builder) {
	said, failed = new(strings.Builder), new(strings.Builder)
	cmd = exec.CommandContext(ctx, s.node, append([]string{filepath.Join(s.dir, name)}, args...)...)
	cmd.Stdout, cmd.Stderr = said, failed
	return cmd, said, failed
}

// runs runs a script to its end, and returns what it says.
func (s script) runs(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd, said, failed := s.command(await.Context(t), name, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args, err, failed)
	}
	return said.String()
}

// fails runs a script that fails, and returns what it says of that.
func (s script) fails(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd, said, failed := s.command(await.Context(t), name, args...)
	if err := cmd.Run(); err == nil {
		t.Errorf("%s %s does not fail, and says %s", name, args, said)
	}
	return failed.String()
}

// goes runs f, and returns what waits for it.
func goes(f func()) (wait func()) {
	var all sync.WaitGroup
	all.Go(f)
	return all.Wait
}
