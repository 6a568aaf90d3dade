package agoratest

import "fmt"

// mailboxScenes are what becomes of a message whose receiver is not there.
var mailboxScenes = []scenario{
	{"an agent that nobody knows is not found", unknownAgent},
	{"mail for an absent agent is delivered on its return, at another edge", absentAgent},
	{"mail waits also after the session has ended", endedAgent},
	{"a plain client is confirmed by its pongs, and gets the rest again, marked", confirmedByPong},
	{"what a pong has confirmed does not come again", notAgain},
	{"an acknowledgement moves the position, and only as far as it says", acknowledged},
	{"an acknowledgement of what was never delivered is refused", badAck},
	{"an agent that comes back within the grace keeps spaces and streams", returned},
}

func unknownAgent(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"send","to":"agent-9","payload":1}`)
	a.ExpectText(`{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","to":"agent-9"}`)
	a.Send(`{"type":"send","id":"m-1","to":"agent-9","payload":1}`)
	a.ExpectText(`{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","request_id":"m-1","to":"agent-9"}`)
	a.Send(`{"type":"reply","to":"agent-9","payload":1}`)
	a.ExpectText(`{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","to":"agent-9"}`)
	a.Send(`{"type":"reply","to":"agent-9","stream_id":"s","stream":true}`)
	a.ExpectText(`{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","to":"agent-9","stream_id":"s"}`)
	s.agent(1, "agent-9")
	a.Send(`{"type":"send","to":"agent-9","id":"m-2","payload":1}`)
	a.Expect(`{"type":"receipt","request_id":"m-2"}`)
}

// mail has c send numbered one-shots, and waits until each is stored.
func (s *scene) mail(c *Client, to string, from, until int) {
	s.Helper()
	for i := from; i < until; i++ {
		c.Send(fmt.Sprintf(`{"type":"send","id":"mail-%d","to":%s,"payload":%d}`, i, Quote(to), i))
		c.Expect(fmt.Sprintf(`{"type":"receipt","request_id":"mail-%d","status":"stored"}`, i))
	}
}

// mailed has c get numbered one-shots, and returns the last.
func (s *scene) mailed(c *Client, from, until int, more string) (f Frame) {
	s.Helper()
	for i := from; i < until; i++ {
		f = c.Expect(fmt.Sprintf(`{"type":"message","payload":%d%s}`, i, more))
	}
	return f
}

func absentAgent(s *scene) {
	a, b := s.pair()
	b.Drop()
	s.mail(a, "agent-2", 0, 5)
	b = s.agent(2, "agent-2")
	s.mailed(b, 0, 5, "")
	b.Barrier()
}

func endedAgent(s *scene) {
	a, b := s.pair()
	b.Close(1000)
	s.away(a, "agent-2")
	s.mail(a, "agent-2", 0, 5)
	b, w := s.enter(2, "agent-2")
	if w.Raw("resumed") == "true" {
		s.Errorf("%s: want a new session", w)
	}
	s.mailed(b, 0, 5, `,"redelivered":"<none>"`)
	b.Barrier()
}

func confirmedByPong(s *scene) {
	a, b := s.pair()
	b.Deafen()
	s.mail(a, "agent-2", 0, 3)
	s.mailed(b, 0, 3, `,"redelivered":"<none>"`)
	b.Send(`{"type":"list"}`) // any other frame proves nothing
	b.Expect(`{"type":"agents"}`)
	b.Drop()
	s.mail(a, "agent-2", 3, 5)
	b = s.agent(2, "agent-2")
	s.mailed(b, 0, 3, `,"redelivered":true`)
	s.mailed(b, 3, 5, "") // the edge may not have noticed yet, and have written it to the old socket
	s.mail(a, "agent-2", 5, 6)
	s.mailed(b, 5, 6, `,"redelivered":"<none>"`)
}

func notAgain(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0,"receipts":["acked"]}`)
	s.mailed(b, 0, 1, "")
	a.ExpectAll(`{"type":"receipt","request_id":"m","status":"stored"}`, `{"type":"receipt","request_id":"m","status":"acked"}`)
	b.Drop()
	s.mail(a, "agent-2", 1, 2)
	b = s.agent(2, "agent-2")
	s.mailed(b, 1, 2, "") // the edge may not have noticed yet, and have written it to the old socket
	s.mail(a, "agent-2", 2, 3)
	s.mailed(b, 2, 3, `,"redelivered":"<none>"`)
}

func acknowledged(s *scene) {
	a, b := s.pair()
	b.Deafen()
	s.mail(a, "agent-2", 0, 4)
	s.mailed(b, 0, 1, "")
	second := s.mailed(b, 1, 2, "")
	s.mailed(b, 2, 4, "")
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, second.Seq()))
	b.Barrier()
	b.Drop()
	b, w := s.enter(2, "agent-2")
	s.mailed(b, 2, 4, `,"redelivered":true`)
	if w.Uint("last_seq") != second.Seq() {
		s.Errorf("last_seq %d, want %d, that was acknowledged", w.Uint("last_seq"), second.Seq())
	}
}

func badAck(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 1)
	f := s.mailed(b, 0, 1, "")
	b.Send(fmt.Sprintf(`{"type":"ack","id":"x","seq":%d}`, f.Seq()+1000))
	b.ExpectText(`{"type":"error","code":"INVALID_REQUEST","message":"<any>","request_id":"x"}`)
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()))
	b.Barrier()
}

func returned(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	a.Send(startIndexed)
	s.indexed(a, 1)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	s.gotIndexed(b, 1)
	a.Drop()
	a, w := s.enter(2, "agent-1")
	if w.Raw("resumed") != "true" {
		s.Errorf("%s: want the session to go on", w)
	}
	s.indexed(a, 2)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s","index":3}`)
	s.gotIndexed(b, 2)
	b.Expect(`{"type":"message_end"}`)
	b.Send(`{"type":"space.publish","space":"general","data":{"text":"still here?"}}`)
	b.Expect(`{"type":"space.event"}`)
	a.Await(`{"type":"space.event","data":{"text":"still here?","from":"agent-2","timestamp":"<any>"}}`)
	b.Barrier() // and nobody was told that it left
}
