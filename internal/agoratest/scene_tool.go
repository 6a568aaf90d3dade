package agoratest

import (
	"fmt"
	"strings"
	"time"
)

// toolScenes are calls of tools, and what else is named beside a payload.
var toolScenes = []scenario{
	{"a tool is called at another edge, and its answer comes byte for byte", toolCalled},
	{"a tool answers in pieces, and with a result behind them", toolStreams},
	{"a tool call that can't be made is an error", toolRefused},
	{"a tool of an agent that goes away is answered by an error of its result", toolAborted},
	{"many tools are called at once, and answered in any order", toolsAtOnce},
	{"a tool call that is sent again after a resume is made once", toolOnce},
	{"the end of a stream may have a payload", endWithPayload},
	{"the stream_id of a one-shot reply is not delivered", oneShotOfStream},
}

// lateToolScenes are those with deadlines.
var lateToolScenes = []scenario{
	{"a tool call has a deadline", toolLate},
	{"requests and replies may be named beside their payloads", namedBeside},
}

// hearTool expects a call of a tool, and returns what it is to be answered by.
func hearTool(c *Client, tool, arguments string) (id string) {
	c.t.Helper()
	f := c.Expect(fmt.Sprintf(`{"type":"message","from":"agent-1","request_id":"<any>","payload":{"action":"call_tool","tool_name":%q,"request_id":"<any>","arguments":"<any>"}}`, tool))
	payload := Frame(f.Raw("payload"))
	if got := payload.Raw("arguments"); got != arguments {
		c.t.Errorf("arguments are %s, want %s", got, arguments)
	}
	if id = f.Text("request_id"); id != payload.Text("request_id") {
		c.t.Errorf("%s names its request twice", f)
	}
	return id
}

func toolCalled(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"read","arguments":{"n": 1.0,"path":"<\ud83d>"},"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`)
	id := hearTool(b, "read", `{"n": 1.0,"path":"<\ud83d>"}`)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","payload":{"lines": 4.20e1,"lines":null},"request_id":%q}`, id))
	if f := a.Expect(`{"type":"tool.result","id":"t-1","from":"agent-2","error":"<none>"}`); f.Raw("body") != `{"lines": 4.20e1,"lines":null}` {
		s.Errorf("the answer is %s", f)
	}
	a.Send(`{"type":"call_tool","id":"t-2","to":"agent-2","tool_name":"now"}`)
	hearTool(b, "now", `{}`)
	b.Send(`{"type":"reply","to":"agent-1"}`) // the only one that is open
	a.Expect(`{"type":"tool.result","id":"t-2","from":"agent-2","body":"<none>","error":"<none>"}`)
	a.Barrier()
	b.Barrier()
}

func toolStreams(s *scene) {
	a, b := s.pair()
	for i, end := range []string{``, `,"payload":{"lines": 2}`} {
		a.Send(fmt.Sprintf(`{"type":"call_tool","id":"t-%d","to":"agent-2","tool_name":"read"}`, i))
		id := hearTool(b, "read", `{}`)
		b.Send(
			fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"payload":{"request_id":%q}}`, id),
			`{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":" a\n"}`, `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"\ud83d"}`,
			`{"type":"reply_end","to":"agent-1","stream_id":"s"`+end+`}`,
		)
		for k, chunk := range []string{`" a\n"`, `"\ud83d"`} {
			if f := a.Expect(fmt.Sprintf(`{"type":"tool.chunk","id":"t-%d","from":"agent-2","index":%d}`, i, k)); f.Raw("body") != chunk {
				s.Errorf("the chunk is %s, want %s", f, chunk)
			}
		}
		f := a.Expect(fmt.Sprintf(`{"type":"tool.result","id":"t-%d","from":"agent-2","error":"<none>"}`, i))
		if want := strings.TrimPrefix(end, `,"payload":`); f.Raw("body") != want {
			s.Errorf("the result is %s, want %s", f, want)
		}
	}
}

func toolRefused(s *scene) {
	a := s.agent(0, "agent-1")
	b := s.open(1)
	b.Send(`{"type":"agent.register","agent":{"id":"agent-2","tools":["read"]}}`)
	b.Expect(`{"type":"agent.registered"}`)
	a.Until("the card is at the edge", func() bool {
		a.Send(`{"type":"agents.find","to":"agent-2"}`)
		return strings.Contains(string(a.Expect(`{"type":"<any>"}`)), `"read"`)
	})
	a.Send(`{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"write"}`)
	a.Expect(`{"type":"error","code":"NOT_FOUND","request_id":"t-1","to":"agent-2"}`)
	a.Send(`{"type":"call_tool","id":"t-2","to":"nobody","tool_name":"read"}`)
	a.Expect(`{"type":"error","code":"AGENT_NOT_FOUND","request_id":"t-2","to":"nobody"}`)
	a.Send(`{"type":"call_tool","id":"t-3","to":"agent-2","tool_name":"read"}`, `{"type":"call_tool","id":"t-3","to":"agent-2","tool_name":"read"}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"t-3"}`)
	hearTool(b, "read", `{}`)
	b.Barrier()
	anonymous := s.open(1)
	anonymous.Send(`{"type":"call_tool","id":"t-4","to":"agent-2","tool_name":"read"}`)
	anonymous.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"t-4"}`)
}

func toolAborted(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"read"}`)
	id := hearTool(b, "read", `{}`)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id), `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"a"}`)
	a.Expect(`{"type":"tool.chunk","id":"t-1","index":0,"body":"a"}`)
	b.Close(1000)
	a.Expect(`{"type":"tool.result","id":"t-1","from":"agent-2","body":"<none>","error":{"code":"STREAM_ABORTED","message":"<any>"}}`)
}

func toolLate(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"read","deadline_ms":5000}`) // which a busy machine does not let pass before it is heard
	b.Expect(`{"type":"message","deadline_ms":"<any>"}`, `{"type":"error","code":"TIMEOUT","from":"agent-1"}`)
	a.Expect(`{"type":"tool.result","id":"t-1","from":"agent-2","error":{"code":"TIMEOUT","message":"<any>"}}`)
}

func toolsAtOnce(s *scene) {
	a, b := s.pair()
	const many = 50
	ids := map[string]string{}
	for i := range many {
		a.Send(fmt.Sprintf(`{"type":"call_tool","id":"t-%d","to":"agent-2","tool_name":"t","arguments":%d}`, i, i))
	}
	for range many {
		f := b.Expect(`{"type":"message","from":"agent-1"}`)
		ids[Frame(f.Raw("payload")).Raw("arguments")] = f.Text("request_id")
	}
	for n, id := range ids {
		b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","payload":%s,"request_id":%q}`, n, id))
	}
	for range many {
		if f := a.Expect(`{"type":"tool.result"}`); f.Text("id") != "t-"+f.Raw("body") {
			s.Errorf("%s is another one's answer", f)
		}
	}
}

func toolOnce(s *scene) {
	a, b := s.pair()
	const call = `{"type":"call_tool","id":"t-1","to":"agent-2","tool_name":"read"}`
	a.Send(call)
	id := hearTool(b, "read", `{}`)
	b.Send(fmt.Sprintf(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true,"request_id":%q}`, id), `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"a"}`)
	a.Expect(`{"type":"tool.chunk","id":"t-1","index":0,"body":"a"}`)
	a.Drop()
	b.Send(`{"type":"reply_end","to":"agent-1","stream_id":"s"}`)
	a = s.agent(2, "agent-1")
	a.Send(call)
	a.Expect(`{"type":"tool.chunk","id":"t-1","index":0,"body":"a"}`, `{"type":"tool.result","id":"t-1","from":"agent-2"}`)
	a.Barrier()
	b.Barrier()
}

func namedBeside(s *scene) {
	s.inTime(func(from, to string, deadline time.Duration) bool {
		a, b := s.agent(0, from), s.agent(1, to)
		begin := time.Now()
		a.Send(fmt.Sprintf(`{"type":"send","to":%q,"payload":"tidy","deadline_ms":%d,"request_id":"q-1"}`, to, deadline.Milliseconds()))
		b.Expect(`{"type":"message","payload":"tidy","request_id":"q-1"}`)
		b.Send(fmt.Sprintf(`{"type":"reply","to":%q,"payload":"tidied","request_id":"q-1"}`, from))
		a.Await(`{"type":"reply","payload":"tidied","request_id":"q-1"}`)
		if time.Since(begin) > deadline/2 {
			return true
		}
		s.outlast(a, b, to, deadline)
		a.Send(fmt.Sprintf(`{"type":"send","to":%q,"payload":{"request_id":"q-2"},"request_id":"q-3"}`, to))
		b.Expect(`{"type":"message","payload":{"request_id":"q-2"},"request_id":"<none>"}`)
		return false
	})
}

func endWithPayload(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`, `{"type":"send_end","to":"agent-2","stream_id":"s","payload":{"n": 1.0}}`)
	b.Expect(`{"type":"message"}`)
	if f := b.Expect(`{"type":"message_end","stream_id":"s"}`); f.Raw("payload") != `{"n": 1.0}` {
		s.Errorf("the end is %s", f)
	}
	b.Send(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true}`, `{"type":"reply_end","to":"agent-1","stream_id":"s","payload":null}`)
	a.Expect(`{"type":"reply"}`, `{"type":"reply_end","stream_id":"s","payload":null}`)
}

func oneShotOfStream(s *scene) {
	a, b := s.pair()
	b.Send(`{"type":"reply","to":"agent-1","stream_id":"s","payload":1}`)
	a.Expect(`{"type":"reply","from":"agent-2","payload":1,"stream_id":"<none>","stream":"<none>","request_id":"<none>"}`)
}
