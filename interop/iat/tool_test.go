//go:build interop

package iat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// tool is a program that asks for a URL by HTTP, of those that people have at a command line.
type tool struct {
	ask    func(t *testing.T, r request) (argv []string) // which also tells the status
	follow func(t *testing.T, r request) (argv []string) // which says the body as it comes, and nothing else
	status *regexp.Regexp                                // of the answer, in what ask says
}

// request is what a tool asks.
type request struct {
	url    string
	post   bool
	body   string
	events bool   // server-sent events are accepted
	last   string // Last-Event-ID; empty for none
}

// headers returns the headers of a request.
func (r *request) headers() (all []string) {
	if r.post {
		all = append(all, "content-type: application/json")
	}
	if r.events {
		all = append(all, "accept: text/event-stream")
	}
	if r.last != "" {
		all = append(all, "last-event-id: "+r.last)
	}
	return all
}

// file returns the path of a file that holds the body.
func (r *request) file(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(r.body); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// curl returns curl with flags that say how it connects.
func curl(flags ...string) tool {
	argv := func(t *testing.T, r request, more ...string) []string {
		argv := append([]string{needs(t, "curl"), "-sS"}, flags...)
		for _, h := range r.headers() {
			argv = append(argv, "-H", h)
		}
		if r.post {
			argv = append(argv, "--data-binary", "@"+r.file(t))
		}
		return append(append(argv, more...), r.url)
	}
	return tool{
		ask: func(t *testing.T, r request) []string {
			t.Helper()
			return argv(t, r, "-w", "\nstatus %{http_code}\n")
		},
		follow: func(t *testing.T, r request) []string {
			t.Helper()
			return argv(t, r, "-N", "--fail-with-body")
		},
		status: regexp.MustCompile(`(?m)^status (\d+)$`),
	}
}

// nghttp returns nghttp, which speaks HTTP/2 alone: by prior knowledge, where a URL has no TLS.
func nghttp() tool {
	argv := func(t *testing.T, r request, flags ...string) []string {
		argv := append([]string{needs(t, "stdbuf"), "-oL", needs(t, "nghttp")}, flags...)
		for _, h := range r.headers() {
			argv = append(argv, "-H", h)
		}
		if r.post {
			argv = append(argv, "-d", r.file(t))
		}
		return append(argv, r.url)
	}
	return tool{
		ask: func(t *testing.T, r request) []string {
			t.Helper()
			return argv(t, r, "-v")
		},
		follow: func(t *testing.T, r request) []string {
			t.Helper()
			return argv(t, r)
		},
		status: regexp.MustCompile(`:status: (\d+)`),
	}
}

// envelope is one as tests look at it.
type envelope struct {
	Header  struct{ Msg_id, Parent_id, Type, From, To string }
	Payload struct {
		Action, Query, Message, Text, Status string
		Sum                                  int
		Approved                             *bool
		Error                                struct{ Code, Path string }
	}
	raw string
}

// answer is what a tool was answered.
type answer struct {
	status int
	said   string     // all of the tool's output
	parts  []envelope // the envelope, or those of the events
}

// asks has the tool ask, and returns the answer.
func (c tool) asks(t *testing.T, r request) (a answer) {
	t.Helper()
	argv := c.ask(t, r)
	cmd := exec.CommandContext(await.Context(t), argv[0], argv[1:]...)
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	a.said = string(out)
	m := c.status.FindStringSubmatch(a.said)
	if err != nil || m == nil {
		t.Errorf("%s: %v: %s%s", argv, err, out, &faults)
		return a
	}
	a.status, _ = strconv.Atoi(m[1]) // of digits
	for line := range strings.Lines(a.said) {
		if line = strings.TrimPrefix(line, "data: "); strings.HasPrefix(line, "{") {
			a.parts = append(a.parts, read(t, strings.TrimSuffix(line, "\n")))
		}
	}
	return a
}

// posts has the tool POST an envelope.
func (c tool) posts(t *testing.T, edge, body string) answer {
	t.Helper()
	return c.asks(t, request{url: edge + "/a2a", post: true, body: body})
}

// read reads an envelope. nghttp continues in the same line.
func read(t *testing.T, line string) (e envelope) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if err := d.Decode(&e); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	e.raw = line[:d.InputOffset()]
	return e
}

// event is one of a downlink.
type event struct {
	envelope
	id string
}

// downlink is a tool that hears what an agent is sent.
type downlink struct {
	events chan event
	begun  chan struct{} // closed once its edge has answered: the session is there
	end    func()        // kills it; idempotent
}

// hears has the tool open the downlink of an agent, and returns once its edge has answered. An agent that has
// registered is listed before.
func (c tool) hears(t *testing.T, edge, agent, last string) *downlink {
	t.Helper()
	d := c.opens(t, request{url: edge + "/a2a/events?agent=" + agent, last: last})
	await.Recv(t, agent+" has a downlink", d.begun)
	return d
}

// opens has the tool follow what is answered, as events, until it is killed.
func (c tool) opens(t *testing.T, r request) *downlink {
	t.Helper()
	argv := c.follow(t, r)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &downlink{events: make(chan event, 1000), begun: make(chan struct{})} // more than any test has
	begins := sync.OnceFunc(func() { close(d.begun) })
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(d.events)
		var e event
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
			case "retry": // is what an answer begins with
				begins()
			case "id":
				e.id = value
			case "data":
				e.envelope = read(t, value)
				d.events <- e
				e = event{}
			}
		}
	})
	d.end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		reader.Wait()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(d.end)
	return d
}

// next returns the next event.
func (d *downlink) next(t *testing.T) event {
	t.Helper()
	return await.Recv(t, "an event", d.events)
}

// says spells an envelope. header is what it has beside from and to.
func says(from, to, header, payload string) string {
	return fmt.Sprintf(`{"header":{"from":%q,"to":%q,%s},"metadata":{"ttl":3},"payload":%s}`, from, to, header, payload)
}
