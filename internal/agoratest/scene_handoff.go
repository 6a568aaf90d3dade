package agoratest

import (
	"fmt"
	"strings"
)

// handoffScenes are cards and handoffs, and calls that are given up.
var handoffScenes = []scenario{
	{"a request is handed off to an agent at another edge, and its answer comes byte for byte", handedOff},
	{"a handoff is answered in pieces, and with a result behind them", handoffStreams},
	{"a handoff to an agent that goes away is answered by an error of its result", handoffAborted},
	{"a handoff that can't be made is an error", handoffRefused},
	{"a handoff that is sent again after a resume is made once", handoffOnce},
	{"a call that is cancelled before it is answered is told to who was asked, at once", callCancelled},
	{"a call that is cancelled in the midst of its answer ends the stream of that", answerCancelled},
	{"the card of an agent at another edge is what it has registered", cardAsked},
}

// lateHandoffScenes are those with deadlines.
var lateHandoffScenes = []scenario{{"a handoff has a deadline", handoffLate}}

const handoffFrame = `{"type":"handoff","id":"h-1","to":"agent-2","method":"post","path":"/greet/{name}","params":{"name": "Ada"},"input_data":{"n": 1.0,"n":"<\ud83d>"}}`

// hearHandoff expects the handoff of handoffFrame, and returns what it is to be answered by.
func hearHandoff(c *Client) (id string) {
	c.t.Helper()
	f := c.Expect(`{"type":"message","from":"agent-1","request_id":"<any>","payload":"<any>"}`)
	id = f.Text("request_id")
	want := `{"action":"handoff","request_id":"` + id + `","method":"POST","path":"/greet/{name}","params":{"name": "Ada"},"input_data":{"n": 1.0,"n":"<\ud83d>"}}`
	if f.Raw("payload") != want {
		c.t.Errorf("handed %s, want %s", f.Raw("payload"), want)
	}
	return id
}

func handedOff(s *scene) {
	a, b := s.pair()
	a.Send(handoffFrame)
	id := hearHandoff(b)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","payload":{"lines": 4.20e1,"lines":null},"request_id":%q}`, id))
	if f := a.Expect(`{"type":"handoff.result","id":"h-1","from":"agent-2","code":200,"error":"<none>"}`); f.Raw("body") != `{"lines": 4.20e1,"lines":null}` {
		s.Errorf("the answer is %s", f)
	}
	a.Send(`{"type":"handoff","id":"h-2","to":"agent-2","method":"GET","path":"/"}`)
	b.Expect(`{"type":"message","from":"agent-1","payload":{"action":"handoff","request_id":"<any>","method":"GET","path":"/","params":{},"input_data":null}}`)
	b.Send(`{"type":"reply","to":"agent-1"}`) // the only one that is open
	a.Expect(`{"type":"handoff.result","id":"h-2","from":"agent-2","code":200,"body":"<none>","error":"<none>"}`)
	a.Barrier()
	b.Barrier()
}

func handoffStreams(s *scene) {
	a, b := s.pair()
	a.Send(handoffFrame)
	id := hearHandoff(b)
	b.Send(
		fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id),
		`{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":" a\n"}`, `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"\ud83d"}`,
		`{"type":"reply_end","to":"agent-1","stream_id":"s","payload":[2.0]}`,
	)
	for k, chunk := range []string{`" a\n"`, `"\ud83d"`} {
		if f := a.Expect(fmt.Sprintf(`{"type":"handoff.chunk","id":"h-1","from":"agent-2","index":%d}`, k)); f.Raw("body") != chunk {
			s.Errorf("the chunk is %s, want %s", f, chunk)
		}
	}
	if f := a.Expect(`{"type":"handoff.result","id":"h-1","from":"agent-2","code":200}`); f.Raw("body") != `[2.0]` {
		s.Errorf("the result is %s", f)
	}
}

func handoffAborted(s *scene) {
	a, b := s.pair()
	a.Send(handoffFrame)
	id := hearHandoff(b)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id), `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"a"}`)
	a.Expect(`{"type":"handoff.chunk","id":"h-1","index":0,"body":"a"}`)
	b.Close(1000)
	a.Expect(`{"type":"handoff.result","id":"h-1","from":"agent-2","code":502,"body":"<none>","error":{"code":"STREAM_ABORTED","message":"<any>"}}`)
}

func handoffRefused(s *scene) {
	a, b := s.pair()
	for frame, code := range map[string]string{
		`{"type":"handoff","id":"h","to":"nobody","method":"GET","path":"/"}`:               "AGENT_NOT_FOUND",
		`{"type":"handoff","id":"h","to":"agent-2","method":"GET","path":"x"}`:              "INVALID_REQUEST",
		`{"type":"handoff","id":"h","to":"agent-2","path":"/"}`:                             "INVALID_REQUEST",
		`{"type":"handoff","id":"h","to":"agent-2","method":"GET","path":"/","params":[1]}`: "INVALID_REQUEST",
		`{"type":"card.get","id":"h","to":"nobody"}`:                                        "AGENT_NOT_FOUND",
	} {
		a.Send(frame)
		a.Expect(`{"type":"error","code":"` + code + `","request_id":"h"}`)
	}
	a.Send(handoffFrame, handoffFrame, strings.Replace(handoffFrame, `"handoff"`, `"call_tool","tool_name":"x"`, 1))
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"h-1"}`, `{"type":"error","code":"INVALID_REQUEST","request_id":"h-1"}`)
	hearHandoff(b)
	b.Barrier()
}

func handoffOnce(s *scene) {
	a, b := s.pair()
	a.Send(handoffFrame)
	id := hearHandoff(b)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id), `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"a"}`)
	a.Expect(`{"type":"handoff.chunk","id":"h-1","index":0,"body":"a"}`)
	a.Drop()
	b.Send(`{"type":"reply_end","to":"agent-1","stream_id":"s"}`)
	a = s.agent(2, "agent-1")
	a.Send(handoffFrame)
	a.Expect(`{"type":"handoff.chunk","id":"h-1","index":0,"body":"a"}`, `{"type":"handoff.result","id":"h-1","from":"agent-2","code":200}`)
	a.Send(strings.Replace(handoffFrame, "greet", "leave", 1)) // another one under the same id
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"h-1"}`)
	a.Barrier()
	b.Barrier()
}

// The grace of these clusters is an hour: what comes was not told by its end.
func callCancelled(s *scene) {
	a, b := s.pair()
	a.Send(handoffFrame)
	id := hearHandoff(b)
	a.Send(`{"type":"cancel","to":"agent-2","stream_id":"h-1"}`)
	a.Expect(`{"type":"handoff.result","id":"h-1","from":"agent-2","code":502,"error":{"code":"STREAM_ABORTED","message":"the call was cancelled"}}`)
	b.Expect(fmt.Sprintf(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","request_id":%q}`, id))
	a.Barrier()
	b.Barrier()
}

func answerCancelled(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"read"}`)
	id := hearTool(b, "read", `{}`)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id), `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"a"}`)
	a.Expect(`{"type":"tool.chunk","id":"t-1","index":0,"body":"a"}`)
	a.Send(`{"type":"cancel","to":"agent-2","stream_id":"t-1"}`)
	a.Expect(`{"type":"tool.result","id":"t-1","from":"agent-2","error":{"code":"STREAM_ABORTED","message":"the call was cancelled"}}`)
	b.Expect(`{"type":"cancel","from":"agent-1","stream_id":"s"}`)
	a.Barrier()
	b.Barrier()
}

func cardAsked(s *scene) {
	b := s.open(1)
	b.Send(`{"type":"agent.register","agent":{"id":"agent-2","metadata":{"name":"Bob", "n": 1.0},"skills":[{"name":"greet","schema":{"type":"object"}}]}}`)
	b.Expect(`{"type":"agent.registered"}`)
	anonymous := s.open(0)
	anonymous.Until("the card is at the edge", func() bool {
		anonymous.Send(`{"type":"agents.find","to":"agent-2"}`)
		return strings.Contains(string(anonymous.Expect(`{"type":"<any>"}`)), `"greet"`)
	})
	for _, c := range []*Client{anonymous, s.agent(2, "agent-1"), b} {
		c.Until("the card is at the edge", func() bool {
			c.Send(`{"type":"card.get","id":"c-1","to":"agent-2"}`)
			f := c.Expect(`{"type":"<any>"}`)
			return f.Type() == "card" && strings.Contains(string(f), `"id":"c-1","from":"agent-2","card":{"id":"agent-2","name":"Bob",`) &&
				strings.Contains(string(f), `"skills":[{"name":"greet","schema":{"type":"object"}}],"metadata":{"name":"Bob", "n": 1.0}}}`)
		})
	}
}

func handoffLate(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"handoff","id":"h-1","to":"agent-2","method":"GET","path":"/","deadline_ms":5000}`) // which a busy machine does not let pass before it is heard
	b.Expect(`{"type":"message","deadline_ms":"<any>"}`, `{"type":"error","code":"TIMEOUT","from":"agent-1"}`)
	a.Expect(`{"type":"handoff.result","id":"h-1","from":"agent-2","code":504,"error":{"code":"TIMEOUT","message":"<any>"}}`)
}
