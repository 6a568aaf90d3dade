package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/stdio"
)

// line is a connection to a server that speaks over pipes.
type line struct {
	t     *testing.T
	in    *io.PipeWriter
	out   chan string
	begun chan string   // what calls of the tool wait have said, once they wait
	free  chan struct{} // each value ends one of them
	end   chan error    // how the server has ended
}

func serve(t *testing.T, most int) *line {
	t.Helper()
	l := &line{t: t, out: make(chan string, 100), begun: make(chan string, 100), free: make(chan struct{}), end: make(chan error, 1)}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		l.begun <- string(r.Params.Arguments)
		select {
		case <-l.free:
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{}, nil
	})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	l.in = toServer
	go func() {
		defer close(l.out)
		for lines := bufio.NewScanner(fromServer); lines.Scan(); {
			l.out <- lines.Text()
		}
	}()
	go func() {
		l.end <- s.Run(t.Context(), &stdio.Transport{In: in, Out: out, MaxLine: most})
		out.Close()
	}()
	t.Cleanup(func() { toServer.Close() })
	l.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}`)
	l.hears(`"id":"init"`)
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return l
}

func (l *line) say(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, text+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) hears(part string) string {
	l.t.Helper()
	got := await.Recv(l.t, part, l.out)
	if !strings.Contains(got, part) {
		l.t.Fatalf("the server writes %s, want %s", got, part)
	}
	return got
}

const called = `{"jsonrpc":"2.0","id":%,"method":"tools/call","params":{"name":"wait","arguments":{"n":%}}}`

func (l *line) call(id string) {
	l.t.Helper()
	l.say(strings.ReplaceAll(called, "%", id))
	if got := await.Recv(l.t, "the call", l.begun); got != `{"n":`+id+`}` {
		l.t.Fatalf("called with %s", got)
	}
}

func TestNoLineEndsTheConnection(t *testing.T) {
	t.Parallel()
	l := serve(t, 4096)
	for _, c := range []struct{ about, line, code string }{
		{"a byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":5,"method":"ping"}`, "-32700"},
		{"no JSON", `{nope`, "-32700"},
		{"two messages", `{"jsonrpc":"2.0","id":5,"method":"ping"}{"jsonrpc":"2.0","id":6,"method":"ping"}`, "-32700"},
		{"a message and a word", `{"jsonrpc":"2.0","id":5,"method":"ping"} x`, "-32700"},
		{"no UTF-8", `{"jsonrpc":"2.0","id":5,"method":"` + "\xff" + `"}`, "-32700"},
		{"no version", `{"id":5,"method":"ping"}`, "-32600"},
		{"a method that is a number", `{"jsonrpc":"2.0","id":7,"method":42}`, "-32600"},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, "-32600"},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "-32600"},
		{"an id that is no whole number", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "-32600"},
		{"neither a method nor a result", `{"jsonrpc":"2.0","id":5}`, "-32600"},
		{"a string", `"ping"`, "-32600"},
		{"an empty list", `[]`, "-32600"},
		{"values that stand too deeply", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}}`, "-32600"},
		{"a line that is too long", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"` + strings.Repeat("a", 5000) + `"}}`, "-32600"},
	} {
		l.say(c.line)
		if got := l.hears(`"id":null,"error":{"code":` + c.code); !json.Valid([]byte(got)) {
			t.Errorf("%s is answered with %s", c.about, got)
		}
		l.say("") // an empty line says nothing
		l.say(`{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		l.hears(`{"jsonrpc":"2.0","id":"next","result":{}}`)
	}
}

func TestIDsComeBackAsTheyWereSpelled(t *testing.T) {
	t.Parallel()
	l := serve(t, 0)
	for _, id := range []string{`0`, `-7`, `9007199254740991`, `9007199254740993`, `123456789012345678901234567890`, `"a"`, `""`, `"9007199254740993"`, `"<&>"`, `"\u00e9\/"`, `"cut \ud83d"`} {
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		l.hears(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
}

func TestACancelledCallIsNotAnswered(t *testing.T) {
	t.Parallel()
	l := serve(t, 0)
	for _, id := range []string{"1", "9007199254740993"} {
		l.call(id)
		l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`)
		l.say(`{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		l.hears(`"id":"next"`)
	}
	l.in.Close() // its end waits until the calls have ended, which say nothing
	for text := range l.out {
		t.Errorf("the server writes %s", text)
	}
	if err := await.Recv(t, "the end", l.end); err != nil {
		t.Error(err)
	}
}

func TestWhatWasReadIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	l := serve(t, 0)
	l.call("1")
	l.call("2")
	if _, err := io.WriteString(l.in, `{"jsonrpc":"2.0","id":"last","method":"ping"}`); err != nil { // a last line without an end is one, too
		t.Fatal(err)
	}
	l.in.Close()
	l.hears(`"id":"last"`)
	l.free <- struct{}{}
	l.free <- struct{}{}
	got := l.hears(`"result"`) + l.hears(`"result"`)
	if !strings.Contains(got, `"id":1,`) || !strings.Contains(got, `"id":2,`) {
		t.Errorf("answered: %s", got)
	}
	if err := await.Recv(t, "the end", l.end); err != nil {
		t.Error(err)
	}
}

func TestNobodyWaitsForAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	in, toServer := io.Pipe()
	fromServer, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c, _ := (&stdio.Transport{In: in, Out: out}).Connect(t.Context())
	defer c.Close()
	go io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if m, err := c.Read(t.Context()); m == nil || err != nil {
		t.Fatal(m, err)
	}
	ended := make(chan error)
	toServer.Close()
	go func() {
		_, err := c.Read(t.Context())
		ended <- err
	}()
	fromServer.Close()
	if err := await.Recv(t, "the end", ended); err != io.EOF {
		t.Errorf("Read = %v, want %v", err, io.EOF)
	}
}

func TestAnIDThatIsInUseIsRefused(t *testing.T) {
	t.Parallel()
	l := serve(t, 0)
	l.call("1")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	l.hears(`"id":null,"error":{"code":-32600`)
	l.free <- struct{}{}
	l.hears(`"id":1,"result"`)
	l.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	l.hears(`"id":1,"result"`)
}

func TestABatchIsAnsweredInALine(t *testing.T) {
	t.Parallel()
	l := serve(t, 0)
	l.say(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	var all []struct {
		ID    any
		Error *struct{ Code int }
	}
	if got := await.Recv(t, "answers", l.out); json.Unmarshal([]byte(got), &all) != nil || len(all) != 3 || all[0].ID != nil || all[0].Error.Code != -32600 {
		t.Errorf("answered: %s", got)
	}
	l.say(`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	l.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	l.hears(`{"jsonrpc":"2.0","id":3`)
}
