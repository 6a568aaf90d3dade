//go:build interop

package iat

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
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
		t.Run(connection, func(t *testing.T) { node.by(connection).playsAll(t, scenes, edges) })
	}
	t.Run("streams of one session", func(t *testing.T) { node.by("http2").plays(await.Context(t), t, "streams", edges) })
	heard := []string{"notify", "ask", "resume"} // what differs by how it is heard
	t.Run("own eventsource", func(t *testing.T) { node.by("eventsource").playsAll(t, heard, edges) })
	if hasEventSource(t) { // else there is none to be tried
		t.Run("eventsource", func(t *testing.T) { nodeProgram(t, eventSource).by("eventsource").playsAll(t, heard, edges) })
	}
}

func TestProgramsInPythonAreAgents(t *testing.T) {
	edges, python := start(t), pythonProgram(t)
	for _, connection := range []string{"http", "ws"} {
		t.Run(connection, func(t *testing.T) { python.by(connection).playsAll(t, scenes, edges) })
	}
}

func TestProgramsAreAgentsOverTLS(t *testing.T) {
	certs := servers.NewCertificates(t)
	edges := start(t, "--tls.cert", certs.ServerCert, "--tls.key", certs.ServerKey)
	node, python := nodeProgram(t), pythonProgram(t)
	node.env = append(node.env, "NODE_EXTRA_CA_CERTS="+certs.CA)
	python.env = append(python.env, "SSL_CERT_FILE="+certs.CA)
	few := []string{"ask", "resume"}
	for _, connection := range []string{"http2", "fetch", "ws"} {
		t.Run("node "+connection, func(t *testing.T) { node.by(connection).playsAll(t, few, edges) })
	}
	for _, connection := range []string{"http", "ws"} {
		t.Run("python "+connection, func(t *testing.T) { python.by(connection).playsAll(t, few, edges) })
	}
}

// A sub-agent calls tools of its host, is refused one, asks for its approval, and streams its answer, whatever the two
// are written in.
func TestHostAndSubagentMayBeOfTwoLanguages(t *testing.T) {
	edges, node, python := start(t), nodeProgram(t), pythonProgram(t)
	for name, pair := range map[string][2]client{
		"node http2 to python http":            {node.by("http2"), python.by("http")},
		"node ws to python ws":                 {node.by("ws"), python.by("ws")},
		"node fetch to python ws":              {node.by("fetch"), python.by("ws")},
		"python http to node ws":               {python.by("http"), node.by("ws")},
		"python ws to node http2":              {python.by("ws"), node.by("http2")},
		"python http to node fetch":            {python.by("http"), node.by("fetch")},
		"node http2 to node ws":                {node.by("http2"), node.by("ws")},
		"python ws to python http":             {python.by("ws"), python.by("http")},
		"node eventsource to node eventsource": {node.by("eventsource"), node.by("eventsource")},
		"python http to node eventsource":      {python.by("http"), node.by("eventsource")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work(t, pair[0], pair[1], edges)
		})
	}
}

// work has a host give a sub-agent work once that is there, and waits for both. If one of them fails, the other is
// ended.
func work(t *testing.T, host, sub client, edges []string) {
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	cmd, said := sub.command(ctx, "subagent", tagOf(t), edges)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	there := lines.Scan() && lines.Text() == "ready"
	var working sync.WaitGroup
	if there {
		working.Go(func() {
			if !host.plays(ctx, t, "host", edges) {
				cancel()
			}
		})
	}
	if err := cmd.Wait(); err != nil || !there {
		cancel()
		t.Errorf("sub-agent: %v\n%s", err, said)
	}
	working.Wait()
}
