package agoratest

import "fmt"

// streamScenes are streams that do not come to their normal end.
var streamScenes = []scenario{
	{"a receiver cancels: the sender is told, and nothing more comes", cancelledByReceiver},
	{"a sender cancels: the receiver is told, and nothing more comes", cancelledBySender},
	{"a cancel holds after both sides have resumed elsewhere", cancelledForGood},
	{"a cancelled reply stream is told too", cancelledReply},
	{"cancelling what is not open is STREAM_NOT_FOUND", cancelledNothing},
	{"starting a stream that is open is refused, and ends it: nobody could tell the parts apart", startedTwice},
	{"a stream id may be used again at once", pipelinedReuse},
	{"a goodbye mid-stream aborts at once, exactly once", goodbyes},
	{"a stream without indexes goes on after a clean hand-over", unindexed},
	{"a receiver that leaves for good does not disturb the sender", receiverLeft},
}

// startStream begins stream s from a to agent-2, which is b.
func (s *scene) startStream(a, b *Client) {
	s.Helper()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`, `{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"1"}`)
	b.Expect(`{"type":"message","from":"agent-1","stream_id":"s"}`, `{"type":"message_chunk","chunk":"1"}`)
}

// silent proves that nothing else of stream s comes from a to agent-2, which is b.
func (s *scene) silent(a, b *Client) {
	s.Helper()
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"late"}`, `{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"later"}`)
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
	a.Barrier()
}

func cancelledByReceiver(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	b.Send(`{"type":"cancel","to":"agent-1","stream_id":"s"}`)
	a.ExpectText(`{"type":"cancel","from":"agent-2","stream_id":"s"}`)
	s.silent(a, b)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	s.startStream(a, b) // a new one of that name
}

func cancelledBySender(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	a.Send(`{"type":"cancel","to":"agent-2","stream_id":"s"}`)
	b.ExpectText(`{"type":"cancel","from":"agent-1","stream_id":"s"}`)
	s.silent(a, b)
}

func cancelledForGood(s *scene) {
	a, b := s.pair()
	b.Deafen()
	s.startStream(a, b)
	b.Drop()
	b = s.agent(2, "agent-2")
	b.Expect(`{"type":"message","stream_id":"s","redelivered":true}`, `{"type":"message_chunk","chunk":"1","redelivered":true}`)
	b.Send(`{"type":"cancel","id":"c","to":"agent-1","stream_id":"s"}`)
	b.Expect(`{"type":"receipt","request_id":"c"}`)
	a.Expect(`{"type":"cancel","from":"agent-2","stream_id":"s"}`)
	b.Drop()
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"late"}`)
	a.Drop()
	a, b = s.agent(1, "agent-1"), s.agent(0, "agent-2")
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Await(`{"type":"message","payload":"marker"}`)
	b.Close(1000)
	s.away(s.open(0), "agent-2")
	b = s.agent(0, "agent-2", "last_seq", "0") // a session of its own, and all the old mail
	b.Expect(`{"type":"message","payload":"marker"}`)
}

func cancelledReply(s *scene) {
	a, b := s.pair()
	b.Send(`{"type":"reply","to":"agent-1","stream_id":"s","stream":true}`, `{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"1"}`)
	a.Expect(`{"type":"reply","stream_id":"s"}`, `{"type":"reply_chunk","chunk":"1"}`)
	a.Send(`{"type":"cancel","to":"agent-2","stream_id":"s"}`)
	b.ExpectText(`{"type":"cancel","from":"agent-1","stream_id":"s"}`)
	b.Send(`{"type":"reply_chunk","to":"agent-1","stream_id":"s","chunk":"late"}`, `{"type":"reply","to":"agent-1","payload":"marker"}`)
	a.Expect(`{"type":"reply","payload":"marker"}`)
	b.Barrier()
}

func cancelledNothing(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"cancel","id":"c","to":"agent-2","stream_id":"nothing"}`)
	a.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","message":"<any>","request_id":"c","to":"agent-2","stream_id":"nothing"}`)
	s.startStream(a, b)
	a.Send(`{"type":"send_end","id":"e","to":"agent-2","stream_id":"s"}`)
	a.Expect(`{"type":"receipt","request_id":"e"}`)
	b.Expect(`{"type":"message_end"}`)
	a.Send(`{"type":"cancel","id":"c","to":"agent-2","stream_id":"s"}`)
	a.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","request_id":"c"}`)
	b.Send(`{"type":"cancel","id":"c","to":"agent-1","stream_id":"s"}`)
	b.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","request_id":"c"}`)
}

func startedTwice(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	a.Send(`{"type":"send","id":"again","to":"agent-2","stream_id":"s","stream":true,"payload":"another"}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"again","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`)
	s.silent(a, b)
}

func goodbyes(s *scene) {
	b := s.agent(1, "agent-2")
	for _, code := range []int{1000, 1001, 1005} {
		a := s.agent(0, "agent-1")
		s.startStream(a, b)
		a.Close(code)
		b.ExpectText(`{"type":"error","code":"STREAM_ABORTED","message":"<any>","from":"agent-1","stream_id":"s"}`)
		s.away(b, "agent-1")
		a = s.agent(2, "agent-1")
		a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
		b.Expect(`{"type":"message","payload":"marker"}`)
		a.Close(1000)
		s.away(b, "agent-1")
	}
}

func unindexed(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	for i := range 4 {
		a.Drop()
		a = s.agent((i+2)%3, "agent-1")
		a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"%d"}`, i))
		b.Expect(fmt.Sprintf(`{"type":"message_chunk","chunk":"%d"}`, i))
	}
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"message_end"}`)
}

func receiverLeft(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	b.Close(1000)
	s.away(a, "agent-2")
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"2"}`, `{"type":"send_end","id":"e","to":"agent-2","stream_id":"s"}`)
	a.Expect(`{"type":"receipt","request_id":"e"}`)
	b = s.agent(2, "agent-2")
	b.Await(`{"type":"message_chunk","chunk":"2"}`)
	b.Expect(`{"type":"message_end"}`)
}

func pipelinedReuse(s *scene) {
	a, b := s.pair()
	for range 5 {
		a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`,
			`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"1"}`, `{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	}
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":3000}`) // which a busy machine does not let pass before it is heard
	for range 5 {
		b.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message_chunk","chunk":"1"}`, `{"type":"message_end"}`)
	}
	b.Expect(`{"type":"message","stream_id":"s"}`, timeout+`,"from":"agent-1","stream_id":"s"}`)
	a.Expect(timeout + `,"to":"agent-2","stream_id":"s"}`)
}
