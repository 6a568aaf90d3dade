package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/agenttools"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/agora-relay/agora/mcp/stdio"
)

// spellings are objects that decoding and encoding would change, each on its own.
var spellings = []string{
	`{"id":9007199254740993}`,
	`{"n":12345678901234567890,"m":-0,"o":1e400}`,
	`{"price":1.10,"e":1E5}`,
	`{"z":1,"a":2}`,
	`{"a":1,"a":2}`,
	`{"t":"cut \ud83d"}`,
	`{"text":"cut \ud83d"}`,
	`{"h":"<b>&\u003c\u2028` + "\u2028" + `","u":"\u00e9é\/"}`,
	`{"":{"deep":[1.0,{"b":2,"a":1.50}]}}`,
	`{"text":"a","text":"b"}`,
}

// wire is a host that is spoken to line by line.
type wire struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Reader
	next int
}

func startWire(t *testing.T, urls []string, id string, tools bool) *wire {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	w := &wire{t: t, in: toServer, out: bufio.NewReader(fromServer)}
	h := host.New(host.Config{Version: "1", Client: client.Config{URLs: urls, Agent: id}})
	var others host.Catalog
	if tools {
		others = agenttools.New(h.Present(), agenttools.Config{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := h.Serve(ctx, &stdio.Transport{In: in, Out: out}, others); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		toServer.Close()
		fromServer.Close()
		work.Wait()
	})
	w.say("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}`)
	fmt.Fprintln(w.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

// say makes a call and returns its answer, a line.
func (w *wire) say(method, params string) string {
	w.t.Helper()
	w.next++
	fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.next, method, params)
	for {
		line, err := w.out.ReadString('\n')
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.HasPrefix(line, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, w.next)) {
			return line
		}
	}
}

// use calls a tool that must not fail.
func (w *wire) use(tool, arguments string) string {
	w.t.Helper()
	line := w.say("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	if strings.Contains(line, `"isError":true`) || strings.Contains(line, `"error":`) {
		w.t.Fatalf("%s %s: %s", tool, arguments, line)
	}
	return line
}

// TestValuesKeepTheirBytesInEveryTool says what a model says by each tool that says something, and hears what another
// agent says by each that hears.
func TestValuesKeepTheirBytesInEveryTool(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann := startWire(t, c.URLs(), "ann", false)
	bob := dial(t, c, "bob")
	ann.use("agora_join", `{"space":"build"}`)
	space, err := bob.Join(await.Context(t), "build", client.JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan *client.Event, 100)
	go func() {
		for e, err := range space.Events(t.Context()) {
			if err == nil && e.Roster == nil {
				events <- e
			}
		}
	}()
	receive := func() *client.Message {
		t.Helper()
		m, err := bob.Receive(await.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Ack()
		return m
	}
	for _, x := range spellings {
		inside := strings.TrimSuffix(strings.TrimPrefix(x, "{"), "}")
		has := func(where, got string) {
			t.Helper()
			if !strings.Contains(got, inside) {
				t.Errorf("%s: it has %s, want %s", where, got, inside)
			}
		}
		ann.use("agora_send", `{"wait_s":null,"to":"bob","payload":`+x+`}`)
		if got := string(receive().Payload); got != x {
			t.Errorf("agora_send: it is %s, want %s", got, x)
		}
		ann.use("agora_publish", `{"space":"build","data":`+x+`}`)
		has("agora_publish", string(await.Recv(t, "the event", events).Data))

		ann.use("agora_ask", `{"to":"bob","wait_s":0,"payload":`+x+`}`)
		q := receive()
		has("agora_ask", string(q.Payload))
		if err := q.Reply(await.Context(t), json.RawMessage(x)); err != nil {
			t.Fatal(err)
		}
		has("the answer to agora_ask", ann.use("agora_ask", `{"wait_s":50,"id":"`+q.RequestID()+`"}`))

		if err := bob.Send(await.Context(t), "ann", json.RawMessage(x)); err != nil {
			t.Fatal(err)
		}
		got := ann.use("agora_inbox", `{"wait_s":50}`)
		has("agora_inbox", got)
		var listed struct {
			Result struct {
				StructuredContent struct{ Messages []struct{ Seq uint64 } }
			}
		}
		if err := json.Unmarshal([]byte(got), &listed); err != nil {
			t.Fatal(err)
		}
		ann.use("agora_reply", fmt.Sprintf(`{"seq":%d,"payload":%s}`, listed.Result.StructuredContent.Messages[0].Seq, x))
		has("agora_reply", string(receive().Payload))

		if err := space.Publish(await.Context(t), json.RawMessage(x)); err != nil {
			t.Fatal(err)
		}
		await.Recv(t, "the event", events)
		for got = ""; !strings.Contains(got, `"from":"bob"`); {
			got = ann.use("agora_read_space", `{"space":"build","wait_s":50}`)
		}
		has("agora_read_space", got)
	}
}

func TestATextKeepsItsBytes(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ann, bob := startWire(t, c.URLs(), "ann", false), dial(t, c, "bob")
	for _, x := range []struct{ arguments, want string }{
		{`"text":"cut \ud83d"`, `{"text":"cut \ud83d"}`},
		{`"text":"\u00e9<","payload":{"b":1.10,"a":1}`, `{"b":1.10,"a":1,"text":"\u00e9<"}`},
		{`"payload":[1.10, 2]`, `[1.10, 2]`},
		{`"payload":1.10`, `1.10`},
		{`"text":null,"payload":"cut \ud83d"`, `"cut \ud83d"`},
	} {
		ann.use("agora_send", `{"to":"bob",`+x.arguments+`}`)
		m, err := bob.Receive(await.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Payload); got != x.want {
			t.Errorf("of %s it is %s, want %s", x.arguments, got, x.want)
		}
		m.Ack()
	}
}

func TestToolsOfAgentsGetAndAnswerValuesAsTheyWereSpelled(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	echo, err := client.Dial(await.Context(t), client.Config{URLs: c.URLs(), Agent: "echo", Card: client.Card{Tools: []agora.Skill{{Name: "say"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { echo.Close() })
	heard := make(chan string, 1)
	go func() {
		_ = echo.Handle(t.Context(), func(ctx context.Context, m *client.Message) { // until it is closed
			var call struct{ Arguments json.RawMessage }
			_ = json.Unmarshal(m.Payload, &call)
			heard <- string(call.Arguments)
			_ = m.Reply(ctx, call.Arguments) // or its caller waits in vain
		})
	}()
	ann := startWire(t, c.URLs(), "ann", true)
	for _, x := range spellings {
		inside := strings.TrimSuffix(strings.TrimPrefix(x, "{"), "}")
		got := ann.use("echo__say", x)
		if said := await.Recv(t, "the call", heard); said != x {
			t.Errorf("called with %s, want %s", said, x)
		}
		if !strings.Contains(got, inside) {
			t.Errorf("answered with %s, want %s", got, inside)
		}
	}
}
