//go:build interop

package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bridge is Streamable HTTP before `agora mcp`, a process for each session: it passes messages on, and waits for their answers.
type bridge struct {
	t    *testing.T
	edge string

	mu       sync.Mutex
	sessions map[string]*piped
}

// piped is a process that speaks MCP over its pipes.
type piped struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	mu  sync.Mutex // one message at a time
}

func (b *bridge) open() (id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id = fmt.Sprintf("session-%d", len(b.sessions)+1)
	p := &piped{cmd: exec.Command(agora, "mcp", "--as", "conforms-"+id, "--url", b.edge)}
	p.cmd.Stderr = b.t.Output()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return "", err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	p.out = bufio.NewReader(out)
	b.sessions[id] = p
	return id, p.cmd.Start()
}

// close ends all processes.
func (b *bridge) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.sessions {
		p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			b.t.Errorf("agora mcp ended: %v", err)
		}
	}
}

// pass hands a message to the process, and returns the answer; nil where there is none to come.
func (p *piped) pass(message []byte) (answer []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.in.Write(append(message, '\n')); err != nil {
		return nil, err
	}
	var asked, said struct{ ID json.RawMessage }
	if err := json.Unmarshal(message, &asked); err != nil || asked.ID == nil {
		return nil, err
	}
	for string(said.ID) != string(asked.ID) { // what is told in between has no way here
		if answer, err = p.out.ReadBytes('\n'); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(answer, &said); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message, err := io.ReadAll(r.Body)
	id := r.Header.Get("Mcp-Session-Id")
	if err == nil && id == "" {
		id, err = b.open()
	}
	b.mu.Lock()
	p := b.sessions[id]
	b.mu.Unlock()
	if err != nil || p == nil {
		http.Error(w, fmt.Sprint("no session: ", err), http.StatusNotFound)
		return
	}
	answer, err := p.pass(message)
	w.Header().Set("Mcp-Session-Id", id)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case answer == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}
}

// scenarios are those of the conformance suite that a server with these tools and this resource can pass; not_applicable.txt has the others.
var scenarios = []string{"server-initialize", "ping", "tools-list", "resources-list"}

var listedScenario = regexp.MustCompile(`(?m)^\s*- (\S+) \[`)

func TestTheConformanceSuitePasses(t *testing.T) {
	b := &bridge{t: t, edge: start(t)[0], sessions: map[string]*piped{}}
	server := httptest.NewServer(b)
	defer b.close()
	defer server.Close()
	suite := needs(t, "node/node_modules/.bin/conformance")
	for _, scenario := range scenarios {
		out := plays(t, node(t), suite, "server", "--url", server.URL, "--scenario", scenario, "-o", t.TempDir())
		t.Logf("%s: %s", scenario, out)
	}
	list, err := os.ReadFile("not_applicable.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Clone(scenarios)
	for line := range strings.Lines(string(list)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			known = append(known, name)
		}
	}
	for _, m := range listedScenario.FindAllStringSubmatch(plays(t, node(t), suite, "list", "--server"), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the suite has a scenario %s that is neither played nor said to make no sense here", m[1])
		}
	}
}
