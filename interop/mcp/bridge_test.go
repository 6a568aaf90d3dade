//go:build interop

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"testing"
)

// bridge is Streamable HTTP before `agora mcp`: it passes messages on, and waits for their answers. Each session has a
// process, and so have all requests together that are of none, as those of the generation 2026-07-28 are.
type bridge struct {
	t    *testing.T
	edge string

	mu       sync.Mutex
	sessions map[string]*piped
}

// stateless is what the bridge calls the process of requests that are of no session.
const stateless = "stateless"

// longest is the most bytes of a message that the suite sends.
const longest = 1 << 20

// process returns that of a session, and starts it where the session begins with the message. nil for a session that is
// not known.
func (b *bridge) process(session, method string) (id string, p *piped, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case session != "":
		return session, b.sessions[session], nil
	case method == "initialize":
		id = fmt.Sprintf("session-%d", len(b.sessions)+1)
	default:
		id = stateless
	}
	if p := b.sessions[id]; p != nil {
		return id, p, nil
	}
	if p, err = startPiped(b.t, agora, "mcp", "--as", "conforms-"+id, "--url", b.edge); err == nil {
		b.sessions[id] = p
	}
	return id, p, err
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

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	var head struct{ Method string }
	if err = errors.Join(err, json.Unmarshal(message, &head)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, p, err := b.process(r.Header.Get("Mcp-Session-Id"), head.Method)
	if err != nil || p == nil {
		http.Error(w, fmt.Sprint("no session: ", err), http.StatusNotFound)
		return
	}
	answer, err := p.pass(message)
	if id != stateless {
		w.Header().Set("Mcp-Session-Id", id)
	}
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

// piped is a process that speaks MCP over its pipes.
type piped struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	mu  sync.Mutex // one message at a time
}

func startPiped(t *testing.T, program string, args ...string) (*piped, error) {
	p := &piped{cmd: exec.Command(program, args...)}
	p.cmd.Stderr = t.Output()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// pass hands a message to the process, and returns the answer; nil where there is none to come.
func (p *piped) pass(message []byte) (answer []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	message = append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n') // no string of JSON has a line end
	if _, err := p.in.Write(message); err != nil {
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
