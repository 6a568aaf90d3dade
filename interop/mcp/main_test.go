//go:build interop

// Package mcp has foreign programs of MCP speak to real edges by `agora mcp`, as their users would: the inspector, a
// host in Python, the conformance suite, and a server of files that joins. A program that is missing fails the test:
// scripts/interop.sh installs them.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// installed is where scripts/interop.sh puts libraries of other languages.
const installed = "../../bin/interop/mcp"

// agora is the program, built once.
var agora string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agora")
	if err != nil {
		panic(err)
	}
	agora = filepath.Join(dir, "agora")
	if out, err := exec.Command("go", "build", "-o", agora, "../../cmd/agora").CombinedOutput(); err != nil {
		panic(string(out))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(dir)
		os.Exit(status)
	}))
}

// needs returns the path of what has been installed.
func needs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(installed, path))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	return path
}

// node returns Node, the same everywhere.
func node(t *testing.T) string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return needs(t, "node/node_modules/node-linux-"+arch+"/bin/node")
}

// start starts a cluster of three edges, and returns their URLs. Programs of the test have a directory for sockets of
// their own.
func start(t *testing.T) []string {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	return agoratest.StartDev(t, "--edges", "3").URLs
}

// plays runs a program to its end and returns its stdout.
func plays(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(await.Context(t), program, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %.200q: %v\n%s\n%s", filepath.Base(program), args, err, ending(out.String()), ending(said.String()))
	}
	return out.String()
}

// ending returns the last of what a program has said, where the reason of a failure stands.
func ending(said string) string { return said[max(0, len(said)-4000):] }

func TestTheInspectorListsAndCallsTools(t *testing.T) {
	edges := start(t)
	inspect := func(args ...string) (said struct {
		Tools   []struct{ Name string }
		Content []struct{ Text string }
		IsError bool
	}) {
		t.Helper()
		all := append([]string{needs(t, "node/node_modules/.bin/inspector"), "--cli", agora, "mcp", "--as", "claude-1", "--url", edges[0]}, args...)
		out := plays(t, node(t), all...)
		if err := json.Unmarshal([]byte(out), &said); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return said
	}
	if tools := inspect("--method", "tools/list").Tools; len(tools) != 9 || tools[0].Name != "agora_ask" {
		t.Errorf("it lists %v", tools)
	}
	if said := inspect("--method", "tools/call", "--tool-name", "agora_who"); said.IsError || !strings.Contains(said.Content[0].Text, "You are claude-1") {
		t.Errorf("agora_who: %+v", said)
	}
	bob, err := client.Dial(await.Context(t), client.Config{URLs: edges[1:], Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	if said := inspect("--method", "tools/call", "--tool-name", "agora_send", "--tool-arg", "to=bob", "--tool-arg", "text=hello"); said.IsError {
		t.Errorf("agora_send: %+v", said)
	}
	if m, err := bob.Receive(await.Context(t)); err != nil || m.From != "claude-1" || string(m.Payload) != `{"text":"hello"}` {
		t.Errorf("bob gets %+v, %v", m, err)
	}
}

func TestAHostInPythonTalksToAnother(t *testing.T) {
	edges := start(t)
	streamer, err := client.Dial(await.Context(t), client.Config{URLs: edges[2:], Agent: "streamer"})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer streamer.Close()
	goOn := make(chan struct{}, 1) // the host has heard the first word
	serving.Go(func() {
		_ = streamer.Handle(t.Context(), func(ctx context.Context, m *client.Message) { // until it is closed
			if string(m.Payload) == `{"text":"go on"}` {
				goOn <- struct{}{}
				return
			}
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				return // its asker waits in vain
			}
			defer s.Close()
			s.WriteString("word ")
			select {
			case <-goOn:
				s.WriteString("by word")
			case <-ctx.Done():
			}
		})
	})
	plays(t, needs(t, "venv/bin/python"), append([]string{"python/host.py", agora}, edges...)...)
}

func TestAServerOfFilesIsAnAgent(t *testing.T) {
	edges := start(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("what is in it"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	join := exec.CommandContext(ctx, agora, "mcp", "join", "--as", "files", "--edges", edges[0], "--", node(t), needs(t, "node/node_modules/.bin/mcp-server-filesystem"), dir)
	join.Cancel = func() error { return join.Process.Signal(os.Interrupt) }
	join.Stderr = t.Output()
	if err := join.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = join.Wait() // it was interrupted
	}()
	await.True(t, "the agent", func() bool { return strings.Contains(plays(t, agora, "agents", "--url", edges[1]), "files") })
	call := func(tool, arguments string) string {
		t.Helper()
		return plays(t, agora, "call", "--to", "files", "--url", edges[1], tool, arguments)
	}
	if said := call("list_directory", `{"path":"."}`); !strings.Contains(said, "a.txt") {
		t.Errorf("list_directory: %s", said)
	}
	if said := call("read_text_file", `{"path":"a.txt"}`); !strings.Contains(said, "what is in it") {
		t.Errorf("read_text_file: %s", said)
	}
}
