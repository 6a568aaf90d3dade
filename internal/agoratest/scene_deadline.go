package agoratest

import "time"

// deadlineScenes are requests and streams with a deadline.
var deadlineScenes = []scenario{
	{"a stream that misses its deadline times out at both ends", streamTimeout},
	{"a request without a reply times out at both ends", requestTimeout},
	{"a reply in time ends the wait", repliedInTime},
	{"a stream that ends in time does not time out", endedInTime},
	{"a deadline holds after a resume at another edge", timeoutElsewhere},
}

const timeout = `{"type":"error","code":"TIMEOUT","message":"<any>"`

func streamTimeout(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":2000}`,
		`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"1"}`)
	f := b.Expect(`{"type":"message","stream_id":"s","deadline_ms":"<any>"}`)
	if left := f.Uint("deadline_ms"); left == 0 || left > 2000+20 { // edges tell the time by the servers, to within half a round trip
		s.Errorf("%d ms left, want at most 2000", left)
	}
	b.Expect(`{"type":"message_chunk","chunk":"1"}`)
	a.Expect(timeout + `,"to":"agent-2","stream_id":"s"}`)
	b.Expect(timeout + `,"from":"agent-1","stream_id":"s"}`)
	s.silent(a, b)
}

func requestTimeout(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"f-1","to":"agent-2","payload":{"request_id":"r-1"},"deadline_ms":2000}`)
	a.Expect(`{"type":"receipt","request_id":"f-1"}`)
	b.Expect(`{"type":"message","payload":{"request_id":"r-1"},"deadline_ms":"<any>"}`)
	a.Expect(timeout + `,"request_id":"f-1","to":"agent-2"}`)
	b.Expect(timeout + `,"request_id":"r-1","from":"agent-1"}`)
}

func repliedInTime(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","payload":{"request_id":"r-1"},"deadline_ms":4000}`)
	b.Expect(`{"type":"message"}`)
	b.Send(`{"type":"reply","to":"agent-1","payload":{"request_id":"r-1"}}`)
	a.Expect(`{"type":"reply"}`)
	s.quiet(5*time.Second, a, b)
}

// quiet proves that nothing comes for a while.
func (s *scene) quiet(d time.Duration, clients ...*Client) {
	s.Helper()
	until := time.Now().Add(d)
	for _, c := range clients {
		c.ExpectNone(func() bool { return time.Now().After(until) })
	}
}

func endedInTime(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":4000}`,
		`{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"message"}`, `{"type":"message_end"}`)
	s.quiet(5*time.Second, a, b)
}

func timeoutElsewhere(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":4000}`,
		`{"type":"send","id":"f-1","to":"agent-2","payload":{"request_id":"r-1"},"deadline_ms":4000}`)
	a.Expect(`{"type":"receipt"}`)
	b.Expect(`{"type":"message"}`, `{"type":"message"}`)
	a.Drop()
	a = s.agent(2, "agent-1")
	a.ExpectAll(timeout+`,"to":"agent-2","stream_id":"s"}`, timeout+`,"to":"agent-2","stream_id":"<none>"}`)
	b.ExpectAll(timeout+`,"from":"agent-1","stream_id":"s"}`, timeout+`,"from":"agent-1","request_id":"r-1"}`)
}
