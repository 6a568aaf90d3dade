package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// allJSON wants every line to be a JSON object with time, level and msg, and returns them.
func allJSON(t *testing.T, said string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(said) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["time"] == nil || m["level"] == nil || m["msg"] == nil {
			t.Errorf("this line is no JSON of the log (%v): %s", err, line)
		}
		lines = append(lines, m)
	}
	return lines
}

func TestEveryLineOfAProcessIsJSONWhereThatIsTheFormat(t *testing.T) {
	t.Parallel()
	// The library of traces complains of such a variable by itself.
	args := append(backends(t), "--log.format", "json", "--log.level", "debug", "--trace.endpoint", "http://127.0.0.1:1")
	e := launchIn(t, []string{"OTEL_EXPORTER_OTLP_TIMEOUT=soon"}, args...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	if status := e.ended(a); status != 0 {
		t.Errorf("it ended with %d", status)
	}
	ready := allJSON(t, e.stdout.String())
	if len(ready) != 1 || ready[0]["msg"] != "ready" || ready[0]["agents"] != e.public || ready[0]["admin"] != e.admin || ready[0]["grpc"] != "grpc://"+e.grpc || ready[0]["edge"] == "" {
		t.Errorf("on stdout: %v, want one line that says ready, and where", ready)
	}
	if !strings.Contains(e.stderr.String(), "soon") {
		t.Error("the library has said nothing: the test shows less than it should")
	}
	allJSON(t, e.stderr.String())
}

func TestTheCheckOfSettingsSpeaksJSONWhereThatIsTheFormat(t *testing.T) {
	status, stdout, stderr := command(t, "config", "check", "--config", write(t, "agora.yaml", "auth: none\nlog.format: json\n"))
	if said := allJSON(t, stdout); status != 0 || stderr != "" || len(said) != 1 || said[0]["msg"] != "the settings are valid" {
		t.Errorf("it ended with %d and said %s%s", status, stdout, stderr)
	}
	faulty := write(t, "agora.yaml", "auth: none\nlog.format: json\nmailbox.max-agee: 1m\nnats.replicas: 2\n")
	status, stdout, stderr = command(t, "config", "check", "--config", faulty)
	if said := allJSON(t, stderr); status != exit.Error || stdout != "" || len(said) != 2 {
		t.Errorf("it ended with %d and said %s%s, want a line for each of two faults", status, stdout, stderr)
	}
}

// A policy may be older than what ids may be: an edge runs with it.
func TestTheCheckOfSettingsWarnsOfIDsThatNoAgentCanHave(t *testing.T) {
	rules := write(t, "policy.yaml", "rules: [{name: first, who: {names: [\"*\"]}, agents: [\" bob\"]}]\n")
	status, stdout, stderr := command(t, "config", "check", "--auth", "none", "--policy", rules)
	if status != 0 || !strings.Contains(stdout, "valid") || !strings.Contains(stderr, `warning: policy: rule "first": agents: " bob": agent id begins`) {
		t.Errorf("it ended with %d and said %s%s", status, stdout, stderr)
	}
	status, stdout, stderr = command(t, "config", "check", "--auth", "none", "--policy", rules, "--log.format", "json")
	if said := allJSON(t, stderr); status != 0 || len(allJSON(t, stdout)) != 1 || len(said) != 1 || said[0]["level"] != "WARN" {
		t.Errorf("it ended with %d and said %s%s, want a warning", status, stdout, stderr)
	}
}

func TestDevSaysReadyInJSONToo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "dev", "--edges", "2", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0", "--log.format", "json")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var stdout, stderr output
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "both edges are ready", func() bool { return strings.Count(stdout.String(), `"ready"`) == 2 })
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	allJSON(t, stdout.String())
	allJSON(t, stderr.String())
}

func TestFatalErrorsAreJSONWhereThatIsTheFormat(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agora.yaml")
	if err := os.WriteFile(file, []byte("log.format: json\nadress: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for about, c := range map[string]struct {
		env    []string
		args   string
		want   string
		status int
	}{
		"what makes no sense":      {nil, "edge --log.format json --edge.lease 1ms", "edge.lease must be", 1},
		"a flag that is unknown":   {nil, "edge --log.format=json --what", "unknown flag", 2},
		"before the format":        {nil, "edge --what --log.format json", "unknown flag", 2},
		"with one of the variable": {[]string{"AGORA_LOG_FORMAT=json"}, "dev --what", "unknown flag", 2},
		"a bad value of one":       {[]string{"AGORA_LOG_FORMAT=json", "AGORA_EDGE_LEASE=x"}, "edge", "AGORA_EDGE_LEASE", 2},
		"a file with faults":       {[]string{"AGORA_CONFIG=" + file}, "edge", "adress is no setting", 2},
		"a port that is taken":     {nil, "dev --log.format json --addr 127.0.0.1:0 --grpc-addr none --p2p-addr none --admin-addr 256.0.0.1:1", "256.0.0.1", 1},
		"one of libp2p's":          {nil, "dev --log.format json --addr 127.0.0.1:0 --grpc-addr none --p2p-addr " + taken.Addr().String() + " --admin-addr 127.0.0.1:0", "address already in use", 1},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			out, status := inProcess(t, c.env, strings.Fields(c.args)...)
			lines := allJSON(t, out)
			if status != c.status || len(lines) == 0 || lines[len(lines)-1]["level"] != "ERROR" || !strings.Contains(out, c.want) {
				t.Errorf("it ended with %d and said %s; want %d and %q", status, out, c.status, c.want)
			}
		})
	}
	if out, status := inProcess(t, []string{"AGORA_LOG_FORMAT=json"}, "send", "--what"); status != exit.Usage || strings.HasPrefix(out, "{") {
		t.Errorf("a verb ended with %d: %s", status, out)
	}
}

func TestTheEndOfADrainIsToldWithCounts(t *testing.T) {
	t.Parallel()
	redis := servers.Redis(t)
	args := append(backends(t), "--redis.url", "redis://"+redis.Addr(), "--log.format", "json")
	e := launch(t, args...).ready()
	alice, bob := connect(t, e.public+"?agent_id=alice"), connect(t, e.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	if status := e.ended(alice, bob); status != 0 {
		t.Errorf("it ended with %d", status)
	}
	wantDrained(t, e, "drained", map[string]any{"level": "INFO", "agents_handed_over": 2.0, "agents_left": 0.0, "pending_bytes": 0.0})

	e = launch(t, append(args, "--drain.timeout", "2s")...).ready()
	carol := connect(t, e.public+"?agent_id=carol")
	carol.hear("agent.registered")
	redis.Stop() // nobody can be told that carol has gone
	e.stop()
	if _, _, err := carol.ReadMessage(); err == nil { // agent.reconnect
		_, _, err = carol.ReadMessage()
		if !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
			t.Errorf("carol's connection ended with %v", err)
		}
	}
	e.over()
	wantDrained(t, e, "drained in part: those left lose their connection, and may return within their grace",
		map[string]any{"level": "WARN", "agents_handed_over": 0.0, "agents_left": 1.0, "pending_bytes": 0.0})
}

// wantDrained wants the log to have one line about the end of the drain, with these attributes.
func wantDrained(t *testing.T, e *running, msg string, want map[string]any) {
	t.Helper()
	lines := logLines(t, e.stderr.String(), msg)
	if len(lines) != 1 {
		t.Fatalf("%d lines say %q: %s", len(lines), msg, e.stderr)
	}
	for key, w := range want {
		if lines[0][key] != w {
			t.Errorf("%s: %s = %v, want %v", msg, key, lines[0][key], w)
		}
	}
	if took, _ := lines[0]["took_ms"].(float64); took <= 0 {
		t.Errorf("%s: took_ms = %v", msg, lines[0]["took_ms"])
	}
}

func TestATerminalIsToldFromAFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if terminal.Is(&output{}) || terminal.Is(file) {
		t.Error("a buffer, or a file, is taken for a terminal")
	}
	if pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil { // where there is one
		defer pty.Close()
		if !terminal.Is(pty) {
			t.Error("a terminal is taken for none")
		}
	}
}
