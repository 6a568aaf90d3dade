//go:build interop

package iat

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// steps are what every client does, in this order.
var steps = []string{"notification", "request", "resume", "refusal"}

// output collects what a process prints while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

var edgeLine = regexp.MustCompile(`(?m)^  edge-\d+  ws(://\S+)/ws  admin \S+$`)

// cluster runs `agora dev` with three edges, as a process, until the test ends, and returns their addresses.
func cluster(t *testing.T) (edges []string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agora")
	run(t, exec.Command("go", "build", "-o", program, "../../cmd/agora"))
	said := &output{}
	c := exec.Command(program, "dev", "--edges", "3", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		t.Fatalf("agora dev: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // if it has ended, Wait says how
		if err := c.Wait(); err != nil {
			t.Errorf("agora dev: %v\n%s", err, said)
		}
	})
	await.True(t, "agora dev is ready", func() bool { return strings.Contains(said.String(), "agora --help") })
	for _, m := range edgeLine.FindAllStringSubmatch(said.String(), -1) {
		edges = append(edges, "http"+m[1])
	}
	if len(edges) != 3 {
		t.Fatalf("agora dev names %d edges, not 3:\n%s", len(edges), said)
	}
	return edges
}

// run runs a command to its end, and returns what it printed. What fails, or is missing, fails the test.
func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, out)
	}
	return string(out)
}

// modules installs the library of WebSocket for Node as package-lock.json pins it, and returns the folder.
func modules(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, exec.CommandContext(await.Context(t), "npm", "ci", "--no-audit", "--no-fund", "--prefix", dir))
	return dir
}

// library installs what requirements.txt pins for Python, and returns the folder.
func library(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, exec.CommandContext(await.Context(t), "python3", "-m", "pip", "install", "--quiet", "--target", dir, "-r", "requirements.txt"))
	return dir
}

func TestProgramsOfOthersPlayEveryStepAtTwoEdges(t *testing.T) {
	t.Parallel()
	edges := cluster(t)
	env := append(os.Environ(), "AGORA_INTEROP_MODULES="+modules(t), "PYTHONPATH="+library(t), "PYTHONDONTWRITEBYTECODE=1")
	for i, client := range [][]string{
		{"node", "node.mjs", "http2"}, {"node", "node.mjs", "fetch"}, {"node", "node.mjs", "ws"},
		{"python3", "client.py", "http"}, {"python3", "client.py", "ws"},
	} {
		t.Run(client[0]+" "+client[2], func(t *testing.T) {
			near, far := edges[i%len(edges)], edges[(i+1)%len(edges)]
			c := exec.CommandContext(await.Context(t), client[0], append(client[1:], near, far)...)
			c.Env = env
			var got []string
			for line := range strings.Lines(run(t, c)) {
				if step, ok := strings.CutPrefix(strings.TrimSpace(line), "ok "); ok {
					got = append(got, step)
				}
			}
			if !slices.Equal(got, steps) {
				t.Errorf("steps %q were seen, want %q", got, steps)
			}
		})
	}
}

func TestToolsOfTheShellPlayEveryStepAtTwoEdges(t *testing.T) {
	t.Parallel()
	edges := cluster(t)
	for i, tool := range []tool{
		{"curl", []string{"-s", "-v", "-N", "--http2-prior-knowledge"}, []string{"--data-binary", "@-"}},
		{"nghttp", []string{"-v", "--no-dep", "-t", "0"}, []string{"-d", "-"}},
	} {
		t.Run(tool.program, func(t *testing.T) {
			p := &play{T: t, tool: tool, near: edges[i], far: edges[i+1], al: "al-" + tool.program, bob: "bob-" + tool.program}
			last, token := p.notifies()
			last = p.asks(last)
			p.resumes(last, token)
			p.isRefused()
		})
	}
}
