package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

// output is what a program has said so far.
type output struct {
	mu   sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.String()
}

// start starts a program, and returns what it says and what ends it as an operator would.
func start(t *testing.T, program string, args ...string) (said *output, end func()) {
	t.Helper()
	said = &output{}
	cmd := exec.CommandContext(await.Context(t), program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return said, func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ends with %v: %s", filepath.Base(program), err, said)
		}
	}
}

func TestTheCallerTalksToTheAgentAndTheToolbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, ".", "../agent", "../toolbox").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	g, err := aip.NewGateway(aip.GatewayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:1," + g.Address() // nothing is at the first one
	var end []func()
	for id, name := range map[string]string{"example_agent": "agent", "example_toolbox": "toolbox"} {
		said, stop := start(t, filepath.Join(dir, name), "--gateway", at)
		end = append(end, stop)
		await.True(t, id, func() bool { return g.Nodes()[id] != nil })
		await.True(t, "what "+id+" says", func() bool { return strings.Contains(said.String(), id+" serves at 127.0.0.1:") })
	}
	for _, try := range []struct {
		args []string
		want string
	}{
		{nil, "how many words are these? (words: 5)\n40 + 2 = 42\n"},
		{[]string{"one", "two"}, "one two (words: 2)\n40 + 2 = 42\n"},
	} {
		out, err := exec.CommandContext(await.Context(t), filepath.Join(dir, "caller"), append([]string{"--gateway", at}, try.args...)...).CombinedOutput()
		if err != nil || string(out) != try.want {
			t.Errorf("the caller says %q, %v, want %q", out, err, try.want)
		}
	}
	for _, stop := range end {
		stop()
	}
	if left := g.Nodes(); len(left) != 0 {
		t.Errorf("%v are left behind", left)
	}
}
