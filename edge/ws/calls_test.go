package ws_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// machine is a dialect whose agents answer as their tools are called, or as requests ask for their paths: "say" with its argument, "fail" with an error, "wait" never.
type machine struct {
	waiting, closed, givenUp atomic.Int64
	card                     atomic.Value // string: what cam answers as its card; "wait" for nothing
}

func (d *machine) Card(ctx context.Context, c carrier.Call) (agora.Registration, error) {
	card, _ := d.card.Load().(string)
	switch card {
	case "":
		return c.To.Registration, nil
	case "wait":
		d.waiting.Add(1)
		<-ctx.Done()
		return agora.Registration{}, ctx.Err()
	}
	return agora.Registration{Media: "application/json", Body: []byte(card)}, nil
}

func (d *machine) Handoff(ctx context.Context, c carrier.Call, h carrier.Handoff) (carrier.Answer, error) {
	switch h.Path {
	case "/refuse":
		return nil, &carrier.Failure{Err: agora.Errorf(agora.Forbidden, "not for you"), Path: "/path"}
	case "/away":
		return nil, agora.Errorf(agora.AgentOffline, "cam is switched off")
	case "/asked":
		h.Input = fmt.Appendf(nil, `[%q,%q,%q,%q]`, h.Method, h.Params, h.Input, c.Within)
	}
	tool := strings.TrimPrefix(h.Path, "/")
	if tool == "asked" {
		tool = "say"
	}
	return d.CallTool(ctx, c, carrier.Tool{Name: tool, Arguments: h.Input})
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
	case "busy":
		a.err = &carrier.Failure{Err: agora.Errorf(agora.RateLimited, "too much at once")}
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
		if errors.Is(context.Cause(ctx), carrier.ErrGivenUp) {
			a.d.givenUp.Add(1)
		}
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

// handed is the frame that hands a request for a path to the machine.
func handed(path, more string) string {
	return fmt.Sprintf(`{"type":"handoff","id":%q,"to":"cam","method":"get","path":"/%s"%s}`, path, path, more)
}

func TestRequestsAreHandedToAgentsOfAnyDialect(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{})
	calls := []struct {
		frame string
		want  []string
	}{
		{handed("say", `,"input_data": {"n": 1.0}`), []string{`{"type":"handoff.result","id":"say","from":"cam","code":200,"body":{"n":1.0},"media":"<none>","error":"<none>"}`}},
		{handed("asked", `,"params":{"a": 1},"input_data":"x","deadline_ms":5000`), []string{`{"type":"handoff.result","id":"asked","code":200,"body":["GET","{\"a\": 1}","\"x\"","5s"]}`}},
		{handed("asked", `,"params":null,"input_data":null`), []string{`{"type":"handoff.result","id":"asked","code":200,"body":["GET","","","0s"]}`}},
		{handed("parent", ``), []string{`{"type":"handoff.result","id":"parent","code":200,"body":" within 0s"}`}},
		{handed("picture", ``), []string{
			`{"type":"handoff.chunk","id":"picture","from":"cam","index":0,"body":"iVA=","media":"image/png"}`,
			`{"type":"handoff.chunk","id":"picture","from":"cam","index":1,"body":"","media":"<none>"}`,
			`{"type":"handoff.result","id":"picture","from":"cam","code":200,"body":"<none>"}`,
		}},
		{handed("fail", ``), []string{`{"type":"handoff.result","id":"fail","from":"cam","code":404,"body":"<none>","error":{"code":"NOT_FOUND","message":"no such file","path":"/path"}}`}},
		{handed("busy", ``), []string{`{"type":"handoff.result","id":"busy","from":"cam","code":400,"error":{"code":"RATE_LIMITED","message":"too much at once"}}`}},
		{handed("break", ``), []string{`{"type":"handoff.result","id":"break","from":"cam","code":502,"error":{"code":"STREAM_ABORTED","message":"gone"}}`}},
		{handed("doubt", ``), []string{`{"type":"error","code":"UNAVAILABLE","request_id":"doubt","to":"cam","retry_after_ms":1000}`}},
		{handed("refuse", ``), []string{`{"type":"handoff.result","id":"refuse","from":"cam","code":403,"error":{"code":"FORBIDDEN","message":"not for you","path":"/path"}}`}},
		{handed("away", ``), []string{`{"type":"error","code":"AGENT_OFFLINE","request_id":"away","to":"cam"}`}},
	}
	for _, c := range calls {
		a.Send(c.frame)
		a.Expect(c.want...)
	}
	a.Barrier()
	if closed, begun := d.closed.Load(), int64(len(calls)-2); closed != begun {
		t.Errorf("%d answers were closed, want %d", closed, begun)
	}
}

func TestACardIsItsAgentsOwnWhereThatIsJSON(t *testing.T) {
	t.Parallel()
	c, d, a := workshop(t, agoratest.Options{})
	nobody := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	const known = `{"id":"cam","name":"cam","registered_at":"<any>","status":"online","dialect":"machine"}`
	for card, want := range map[string]string{
		``:                     known,
		`{"cam": 1.0,"cam":2}`: `{"cam": 1.0,"cam":2}`,
		`"a word"`:             `"a word"`,
		"\x0a\x03cam":          known,
		"\"\xff\"":             known,
	} {
		d.card.Store(card)
		for _, who := range []*agoratest.Client{a, nobody} {
			who.Send(`{"type":"card.get","id":"c","to":"cam"}`)
			if want == known {
				who.Expect(`{"type":"card","id":"c","from":"cam","card":` + want + `}`)
			} else if f := who.Expect(`{"type":"card","id":"c","from":"cam","card":"<any>"}`); f.Raw("card") != want {
				t.Errorf("the card is %s, want %s", f.Raw("card"), want)
			}
		}
	}
	for frame, want := range map[string]string{
		`{"type":"card.get","id":"c","to":"nobody"}`:  `{"type":"error","code":"AGENT_NOT_FOUND","request_id":"c","to":"nobody"}`,
		`{"type":"card.get","id":"c","to":"a\u0000"}`: `{"type":"error","code":"INVALID_REQUEST","request_id":"c"}`,
	} {
		a.Send(frame)
		a.Expect(want)
	}
}

func TestWhatIsNoHandoffIsRefusedAndOpensNone(t *testing.T) {
	t.Parallel()
	c, d, a := workshop(t, agoratest.Options{Node: edge.Config{Limits: admission.Limits{Calls: 1}}})
	for rest, code := range map[string]string{
		`"to":"cam","method":"GET","path":"say"`:                                                    "INVALID_REQUEST",
		`"to":"cam","method":"G T","path":"/say"`:                                                   "INVALID_REQUEST",
		`"to":"cam","path":"/say"`:                                                                  "INVALID_REQUEST",
		`"to":"cam","method":"GET","path":"/say","params":[1]`:                                      "INVALID_REQUEST",
		`"to":"cam","method":"GET","path":"/` + strings.Repeat("x", 64<<10) + `"`:                   "INVALID_REQUEST",
		`"to":"cam","method":"GET","path":"/say","input_data":"` + strings.Repeat("x", 1<<20) + `"`: "MESSAGE_TOO_LARGE",
		`"to":"nobody","method":"GET","path":"/say"`:                                                "AGENT_NOT_FOUND",
	} {
		a.Send(`{"type":"handoff","id":"h",` + rest + `}`)
		a.Expect(`{"type":"error","code":"` + code + `"}`)
	}
	nobody := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	nobody.Send(handed("say", ``))
	nobody.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"say"}`)
	a.Send(handed("say", `,"input_data":1`)) // there is room for one
	a.Expect(`{"type":"handoff.result","id":"say","body":1}`)
	if waiting := d.waiting.Load(); waiting != 0 {
		t.Errorf("%d calls wait, want none", waiting)
	}
}

func TestAnIDIsThatOfOneOpenCall(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{})
	a.Send(handed("wait", ``))
	await.True(t, "it waits", func() bool { return d.waiting.Load() == 1 })
	for _, frame := range []string{handed("wait", ``), called("wait", ``), `{"type":"card.get","id":"wait","to":"cam"}`} {
		a.Send(frame)
		a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"wait","message":"a call with this id is open"}`)
	}
}

func TestACallIsGivenUpByACancel(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{})
	a.Send(handed("wait", ``), `{"type":"call_tool","id":"tool","to":"cam","tool_name":"wait"}`)
	await.True(t, "both wait", func() bool { return d.waiting.Load() == 2 })
	a.Send(`{"type":"cancel","to":"another","stream_id":"wait"}`)
	a.Expect(`{"type":"error","to":"another","stream_id":"wait"}`) // of a stream that there is not
	a.Send(`{"type":"cancel","to":"cam","stream_id":"wait"}`)
	a.Expect(`{"type":"handoff.result","id":"wait","from":"cam","code":502,"error":{"code":"STREAM_ABORTED","message":"the call was cancelled"}}`)
	a.Send(`{"type":"cancel","to":"cam","stream_id":"tool"}`)
	a.Expect(`{"type":"tool.result","id":"tool","from":"cam","error":{"code":"STREAM_ABORTED","message":"the call was cancelled"}}`)
	if up, closed := d.givenUp.Load(), d.closed.Load(); up != 2 || closed != 2 {
		t.Errorf("%d answers were given up, and %d closed, want both", up, closed)
	}
	d.card.Store("wait")
	a.Send(`{"type":"card.get","id":"card","to":"cam"}`)
	await.True(t, "the card is asked for", func() bool { return d.waiting.Load() == 3 })
	a.Send(`{"type":"cancel","to":"cam","stream_id":"card"}`)
	a.Expect(`{"type":"error","code":"STREAM_ABORTED","request_id":"card","to":"cam"}`)
	a.Send(handed("wait", ``)) // the id is free again
	await.True(t, "it waits", func() bool { return d.waiting.Load() == 4 })
}

func TestOpenCallsAreBoundedAndEndWithTheConnection(t *testing.T) {
	t.Parallel()
	_, d, a := workshop(t, agoratest.Options{Node: edge.Config{Limits: admission.Limits{Calls: 2}}})
	a.Send(`{"type":"call_tool","id":"1","to":"cam","tool_name":"wait"}`, handed("wait", ``))
	a.Send(called("say", ``))
	a.Expect(`{"type":"error","code":"RATE_LIMITED","request_id":"say"}`)
	a.Send(`{"type":"card.get","id":"card","to":"cam"}`)
	a.Expect(`{"type":"error","code":"RATE_LIMITED","request_id":"card"}`)
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
