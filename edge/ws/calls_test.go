package ws_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// machine is a dialect whose agents answer as their tools are called: "say" with its argument, "fail" with an error, "wait" never.
type machine struct{ waiting, closed atomic.Int64 }

func (d *machine) Card(_ context.Context, c carrier.Call) (agora.Registration, error) {
	return c.To.Registration, nil
}

func (d *machine) Handoff(context.Context, carrier.Call, carrier.Handoff) (carrier.Answer, error) {
	return nil, agora.Errorf(agora.InvalidRequest, "a machine takes no requests")
}

func (d *machine) CallTool(_ context.Context, c carrier.Call, t carrier.Tool) (carrier.Answer, error) {
	a := &spoken{d: d, waits: t.Name == "wait", err: io.EOF}
	whole := func(body []byte, media string) {
		a.rest = []agora.Message{{From: c.To.ID, Kind: agora.Reply, Body: body, Media: media}}
	}
	switch t.Name {
	case "say":
		whole(t.Arguments, "")
	case "parent":
		whole([]byte(t.Parent+" within "+c.Within.String()), agora.MediaText)
	case "picture":
		a.rest = []agora.Message{{Part: agora.Start}, {Part: agora.Chunk, Body: []byte{0x89, 'P'}, Media: "image/png"}, {Part: agora.Chunk}, {Part: agora.End}}
	case "flood":
		a.rest = make([]agora.Message, 300)
		for i := range a.rest {
			a.rest[i] = agora.Message{Part: agora.Chunk, Body: []byte(strings.Repeat("x", 64<<10)), Media: agora.MediaText}
		}
	case "fail":
		a.err = fmt.Errorf("as it was told: %w", &carrier.Failure{Err: agora.Errorf(agora.NotFound, "no such file"), Path: "/path"})
	case "break":
		a.err = agora.Errorf(agora.StreamAborted, "gone")
	case "doubt":
		a.err = io.ErrUnexpectedEOF
	}
	return a, nil
}

// spoken is the answer of a machine.
type spoken struct {
	d     *machine
	rest  []agora.Message
	waits bool
	err   error
}

func (a *spoken) Next(ctx context.Context) (agora.Message, error) {
	if a.waits {
		a.d.waiting.Add(1)
		<-ctx.Done()
		return agora.Message{}, ctx.Err()
	}
	if len(a.rest) == 0 {
		return agora.Message{}, a.err
	}
	m := a.rest[0]
	a.rest = a.rest[1:]
	return m, nil
}

func (a *spoken) Close() { a.d.closed.Add(1) }

// workshop is an edge with a machine, and an agent that calls its tools.
func workshop(t *testing.T, o agoratest.Options) (*agoratest.Cluster, *machine, *agoratest.Client) {
	t.Helper()
	d := new(machine)
	o.Edges = 1
	o.Door.Carriers = carrier.New(nil)
	o.Door.Carriers.Register("machine", d)
	c := agoratest.Start(t, o)
	who, err := c.Node(0).Authenticate(await.Context(t), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := who.Register(await.Context(t), agora.Agent{ID: "cam", Name: "cam", Dialect: "machine"}, 0); err != nil {
		t.Fatal(err)
	}
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=anna", nil)
	a.Expect(`{"type":"agent.registered"}`)
	a.Until("the machine is in the directory", func() bool {
		a.Send(`{"type":"agents.find","to":"cam"}`)
		return strings.Contains(string(a.Take("an answer")), `"machine"`)
	})
	return c, d, a
}

// called is the frame that calls a tool of the machine.
func called(tool, more string) string {
	return fmt.Sprintf(`{"type":"call_tool","id":%q,"to":"cam","tool_name":%q%s}`, tool, tool, more)
}

func TestToolsOfAnyDialectAreCalled(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{})
	calls := []struct {
		frame string
		want  []string
	}{
		{called("say", `,"arguments": {"n": 1.0}`), []string{`{"type":"tool.result","id":"say","from":"cam","body":{"n":1.0},"media":"<none>","error":"<none>"}`}},
		{called("say", `,"arguments":null`), []string{`{"type":"tool.result","id":"say","from":"cam","body":null}`}},
		{called("parent", `,"parent_id":"m-1","deadline_ms":9007199254740991`), []string{`{"type":"tool.result","id":"parent","body":"m-1 within 8760h0m0s"}`}},
		{called("picture", ``), []string{
			`{"type":"tool.chunk","id":"picture","from":"cam","index":0,"body":"iVA=","media":"image/png"}`,
			`{"type":"tool.chunk","id":"picture","from":"cam","index":1,"body":"","media":"<none>"}`,
			`{"type":"tool.result","id":"picture","from":"cam","body":"<none>"}`,
		}},
		{called("fail", ``), []string{`{"type":"tool.result","id":"fail","from":"cam","body":"<none>","error":{"code":"NOT_FOUND","message":"no such file","path":"/path"}}`}},
		{called("break", ``), []string{`{"type":"tool.result","id":"break","from":"cam","error":{"code":"STREAM_ABORTED","message":"gone"}}`}},
		{called("doubt", ``), []string{`{"type":"error","code":"UNAVAILABLE","request_id":"doubt","to":"cam","retry_after_ms":1000}`}},
	}
	for _, c := range calls {
		a.Send(c.frame)
		a.Expect(c.want...)
	}
	a.Barrier()
	if closed := d.closed.Load(); closed != int64(len(calls)) {
		t.Errorf("%d answers were closed, want %d", closed, len(calls))
	}
}

func TestOpenToolCallsAreBoundedAndEndWithTheConnection(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{Node: edge.Config{Limits: edge.Limits{Calls: 2}}})
	for _, id := range []string{"1", "2"} {
		a.Send(`{"type":"call_tool","id":"` + id + `","to":"cam","tool_name":"wait"}`)
	}
	a.Send(called("say", ``))
	a.Expect(`{"type":"error","code":"RATE_LIMITED","request_id":"say"}`)
	await.True(t, "both wait", func() bool { return d.waiting.Load() == 2 })
	a.Barrier() // which is answered while they wait
	a.Drop()
	await.True(t, "both are closed", func() bool { return d.closed.Load() == 2 })
}

func TestAnAnswerThatIsNotReadWaits(t *testing.T) {
	t.Parallel()
	const answers = 256 << 10
	c, _, a := workshop(t, agoratest.Options{Door: ws.Config{Answers: answers}})
	a.Pause()
	a.Send(called("flood", ``))
	for i := range 3 { // so that many wait for room at a time
		a.Send(fmt.Sprintf(`{"type":"call_tool","id":"more-%d","to":"cam","tool_name":"flood"}`, i))
	}
	a.Resume()
	for range 4 * 301 {
		if f := a.Take("a part of an answer"); f.Text("type") == "error" {
			t.Fatalf("got %s", f)
		}
	}
	if stalled := c.Door(0).Stats().Stalled.Load(); stalled != 0 {
		t.Errorf("%d connections stalled, want none", stalled)
	}
}
