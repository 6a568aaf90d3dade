//go:build interop

package iat

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// eventSource is the flag with which Node has an EventSource of its own.
const eventSource = "--experimental-eventsource"

// hasEventSource reports whether Node knows the flag.
func hasEventSource(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command(needs(t, "node"), "-p", fmt.Sprintf("process.allowedNodeEnvironmentFlags.has(%q)", eventSource)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "true"
}

func TestProgramsInNodeAreAgents(t *testing.T) {
	edges, node := start(t), nodeProgram(t)
	for _, connection := range []string{"http2", "fetch", "ws"} {
		t.Run(connection, func(t *testing.T) { node.playsAll(t, connection, scenes, edges) })
	}
	t.Run("streams of one session", func(t *testing.T) { node.plays(t, "http2", "streams", edges) })
	heard := []string{"notify", "ask", "resume"} // what differs by how it is heard
	t.Run("own eventsource", func(t *testing.T) { node.playsAll(t, "eventsource", heard, edges) })
	if hasEventSource(t) { // else there is none to be tried
		t.Run("eventsource", func(t *testing.T) { nodeProgram(t, eventSource).playsAll(t, "eventsource", heard, edges) })
	}
}

func TestProgramsInPythonAreAgents(t *testing.T) {
	edges, python := start(t), pythonProgram(t)
	for _, connection := range []string{"http", "ws"} {
		t.Run(connection, func(t *testing.T) { python.playsAll(t, connection, scenes, edges) })
	}
}

func TestProgramsAreAgentsOverTLS(t *testing.T) {
	certs := agoratest.NewCertificates(t)
	edges := start(t, "--tls.cert", certs.ServerCert, "--tls.key", certs.ServerKey)
	node, python := nodeProgram(t), pythonProgram(t)
	node.env = append(node.env, "NODE_EXTRA_CA_CERTS="+certs.CA)
	python.env = append(python.env, "SSL_CERT_FILE="+certs.CA)
	few := []string{"ask", "resume"}
	for _, connection := range []string{"http2", "fetch", "ws"} {
		t.Run("node "+connection, func(t *testing.T) { node.playsAll(t, connection, few, edges) })
	}
	for _, connection := range []string{"http", "ws"} {
		t.Run("python "+connection, func(t *testing.T) { python.playsAll(t, connection, few, edges) })
	}
}

// seat is a client and how it is connected.
type seat struct {
	program
	connection string
}

// A sub-agent calls tools of its host, is refused one, asks for its approval, and streams its answer, whatever the two are written in.
func TestHostAndSubagentMayBeOfTwoLanguages(t *testing.T) {
	edges, node, python := start(t), nodeProgram(t), pythonProgram(t)
	for name, pair := range map[string][2]seat{
		"node http2 to python http":   {{node, "http2"}, {python, "http"}},
		"node ws to python ws":        {{node, "ws"}, {python, "ws"}},
		"node fetch to python ws":     {{node, "fetch"}, {python, "ws"}},
		"python http to node ws":      {{python, "http"}, {node, "ws"}},
		"python ws to node http2":     {{python, "ws"}, {node, "http2"}},
		"python http to node fetch":   {{python, "http"}, {node, "fetch"}},
		"node http2 to node ws":       {{node, "http2"}, {node, "ws"}},
		"python ws to python http":    {{python, "ws"}, {python, "http"}},
		"node eventsource to itself":  {{node, "eventsource"}, {node, "eventsource"}},
		"python http to node own sse": {{python, "http"}, {node, "eventsource"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work(t, pair[0], pair[1], edges)
		})
	}
}

// work has a host give a sub-agent work once that is there, and waits for both.
func work(t *testing.T, host, sub seat, edges []string) {
	cmd, said := sub.command(await.Context(t), sub.connection, "subagent", tagOf(t), edges)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // how it ended says more
	if line == "ready\n" {
		host.plays(t, host.connection, "host", edges)
	}
	if err := cmd.Wait(); err != nil || line != "ready\n" {
		t.Errorf("sub-agent: %v\n%s", err, said)
	}
}
