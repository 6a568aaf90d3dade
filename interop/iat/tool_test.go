//go:build interop

package iat

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// tool is a program that makes one request, and prints the head of its answer and then the body, as they come.
type tool struct {
	program      string
	always, body []string // arguments; body has it send its standard input
}

// event is a server-sent event, or the body of an answer that has none.
type event struct{ id, data string }

// answer is what a tool that runs has printed so far.
type answer struct {
	head   chan struct{} // closed once the fields below are there, or the tool has ended
	status string
	fields map[string]string
	events chan event // closed when the tool has ended
	stop   func()     // ends the tool, and waits for it
}

// received is before each field of a head where nghttp or curl prints it.
var received = regexp.MustCompile(`^(\[ *[\d.]+\] recv \(stream_id=\d+\)|<) `)

// start makes a request; without an envelope it is a GET. The tool is ended with the test.
func (c tool) start(t *testing.T, url, envelope string, headers ...string) *answer {
	t.Helper()
	args := c.always
	for _, h := range headers {
		args = append(args[:len(args):len(args)], "-H", h)
	}
	if envelope != "" {
		args = append(append(args[:len(args):len(args)], "-H", "content-type: application/json"), c.body...)
	}
	cmd := exec.CommandContext(await.Context(t), c.program, append(args[:len(args):len(args)], url)...)
	cmd.Stdin = strings.NewReader(envelope)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout // where curl prints heads at once
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("%s: %v (scripts/install.sh installs it)", c.program, err)
	}
	a := &answer{head: make(chan struct{}), fields: map[string]string{}, events: make(chan event, 64)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.read(out)
		_ = cmd.Wait() // most are killed; what they have printed is what counts
	}()
	a.stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	}
	t.Cleanup(a.stop)
	return a
}

// read reads what the tool prints until it ends.
func (a *answer) read(out io.Reader) {
	defer close(a.events)
	var id string
	open := true
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimRight(received.ReplaceAllString(lines.Text(), ""), "\r ")
		name, value, _ := strings.Cut(strings.TrimPrefix(line, ":"), ": ")
		switch {
		case open && a.status != "" && (line == "" || strings.Contains(line, "First response header")):
			open = false
			close(a.head)
		case open && strings.HasPrefix(line, "HTTP/2 "):
			a.status = strings.TrimPrefix(line, "HTTP/2 ")
		case open && name == "status":
			a.status = value
		case open:
			a.fields[name] = value
		case name == "id":
			id = value
		case name == "data":
			a.events <- event{id, value}
			id = ""
		case strings.HasPrefix(line, `{"`):
			a.events <- event{"", line}
		}
	}
	if open {
		close(a.head)
	}
}
