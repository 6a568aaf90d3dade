package agoratest

import (
	"fmt"
	"time"
)

// deadlineScenes are requests and streams with a deadline.
var deadlineScenes = []scenario{
	{"a deadline is handed on as the time that is left", timeLeft},
	{"a stream that misses its deadline times out at both ends", streamTimeout},
	{"a request without a reply times out at both ends", requestTimeout},
	{"a request that its sender gives up is told to who was asked, and has no deadline any more", requestGivenUp},
	{"a reply in time ends the wait", repliedInTime},
	{"a stream that ends in time does not time out", endedInTime},
	{"a deadline holds after a resume at another edge", timeoutElsewhere},
}

const timeout = `{"type":"error","code":"TIMEOUT","message":"<any>"`

func timeLeft(s *scene) {
	a, b := s.pair()
	const deadline = time.Hour
	begin := time.Now()
	a.Send(fmt.Sprintf(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":%d}`, deadline.Milliseconds()))
	f := b.Expect(`{"type":"message","stream_id":"s","deadline_ms":"<any>"}`)
	const exact = time.Minute // so well do edges know the servers' time, whatever their own clock says
	left := time.Duration(f.Uint("deadline_ms")) * time.Millisecond
	if left > deadline+exact || left < deadline-time.Since(begin)-exact {
		s.Errorf("%v left, want at most %v", left, deadline)
	}
}

func streamTimeout(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true,"deadline_ms":1000}`,
		`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"1"}`)
	b.Expect(`{"type":"message","stream_id":"s","deadline_ms":"<any>"}`)
	a.Expect(timeout + `,"to":"agent-2","stream_id":"s"}`)
	b.Await(timeout + `,"from":"agent-1","stream_id":"s"}`) // behind the chunk, if that was stored in time
	s.silent(a, b)
}

func requestTimeout(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"f-1","to":"agent-2","payload":{"request_id":"r-1"},"deadline_ms":1000}`)
	a.ExpectAll(`{"type":"receipt","request_id":"f-1"}`, timeout+`,"request_id":"f-1","to":"agent-2"}`)
	b.Expect(`{"type":"message","payload":{"request_id":"r-1"},"deadline_ms":"<any>"}`, timeout+`,"request_id":"r-1","from":"agent-1"}`)
}

func requestGivenUp(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"f-1","to":"agent-2","payload":{"request_id":"r-1"},"deadline_ms":5000}`)
	a.Expect(`{"type":"receipt","request_id":"f-1"}`)
	a.Send(`{"type":"cancel","id":"f-2","to":"agent-2","request_id":"r-1"}`)
	a.Expect(`{"type":"receipt","request_id":"f-2"}`)
	b.Expect(`{"type":"message","payload":{"request_id":"r-1"},"deadline_ms":"<any>"}`,
		`{"type":"error","code":"STREAM_ABORTED","message":"the request was given up before its answer","request_id":"r-1","from":"agent-1"}`)
	a.Send(`{"type":"cancel","id":"f-3","to":"agent-2"}`, `{"type":"cancel","id":"f-4","to":"agent-2","stream_id":"s","request_id":"r-1"}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"f-3"}`, `{"type":"error","code":"INVALID_REQUEST","request_id":"f-4"}`)
	s.outlast(a, b, "agent-2", 5*time.Second)
}

// inTime plays something between two agents that must be done before a deadline passes: again, with others and with
// more time, when the machine was too slow for that.
func (s *scene) inTime(play func(from, to string, deadline time.Duration) (tooLate bool)) {
	from, to, deadline := "agent-1", "agent-2", 2*time.Second
	for play(from, to, deadline) {
		if deadline > patience {
			s.Fatalf("nothing can be done within %v", deadline)
		}
		from, to, deadline = from+"+", to+"+", 4*deadline
	}
}

// outlast waits until the deadlines have passed of whatever was sent before with the same one: that of a request after
// it has. Nothing else must come.
func (s *scene) outlast(a, b *Client, to string, deadline time.Duration) {
	s.Helper()
	a.Send(fmt.Sprintf(`{"type":"send","id":"last","to":%q,"payload":{"request_id":"last"},"deadline_ms":%d}`, to, deadline.Milliseconds()))
	a.ExpectAll(`{"type":"receipt","request_id":"last"}`, timeout+`,"request_id":"last"}`)
	b.Expect(`{"type":"message","payload":{"request_id":"last"}}`, timeout+`,"request_id":"last"}`)
	a.Barrier()
	b.Barrier()
}

func repliedInTime(s *scene) {
	s.inTime(func(from, to string, deadline time.Duration) bool {
		a, b := s.agent(0, from), s.agent(1, to)
		begin := time.Now()
		a.Send(fmt.Sprintf(`{"type":"send","to":%q,"payload":{"request_id":"r-1"},"deadline_ms":%d}`, to, deadline.Milliseconds()))
		b.Expect(`{"type":"message"}`)
		b.Send(fmt.Sprintf(`{"type":"reply","to":%q,"payload":{"request_id":"r-1"}}`, from))
		a.Await(`{"type":"reply"}`)
		if time.Since(begin) > deadline/2 {
			return true
		}
		s.outlast(a, b, to, deadline)
		return false
	})
}

func endedInTime(s *scene) {
	s.inTime(func(from, to string, deadline time.Duration) bool {
		a, b := s.agent(0, from), s.agent(1, to)
		begin := time.Now()
		a.Send(fmt.Sprintf(`{"type":"send","to":%q,"stream_id":"s","stream":true,"deadline_ms":%d}`, to, deadline.Milliseconds()),
			fmt.Sprintf(`{"type":"send_end","id":"end","to":%q,"stream_id":"s"}`, to))
		answer := a.Take("an answer to the end") // which is too late when the time is over
		if time.Since(begin) > deadline/2 {
			return true
		}
		if d := answer.Match(`{"type":"receipt","request_id":"end"}`); d != "" {
			s.Errorf("the end is answered %s: %s", answer, d)
		}
		b.Expect(`{"type":"message"}`, `{"type":"message_end"}`)
		s.outlast(a, b, to, deadline)
		return false
	})
}

func timeoutElsewhere(s *scene) {
	s.inTime(func(from, to string, deadline time.Duration) bool {
		a, b := s.agent(0, from), s.agent(1, to)
		begin := time.Now()
		a.Send(fmt.Sprintf(`{"type":"send","to":%q,"stream_id":"s","stream":true,"deadline_ms":%d}`, to, deadline.Milliseconds()),
			fmt.Sprintf(`{"type":"send","id":"f-1","to":%q,"payload":{"request_id":"r-1"},"deadline_ms":%d}`, to, deadline.Milliseconds()))
		b.Expect(`{"type":"message"}`)
		b.Await(`{"type":"message","payload":{"request_id":"r-1"}}`)
		a.Await(`{"type":"receipt"}`)
		a.Drop()
		a = s.agent(2, from)
		if time.Since(begin) > deadline*3/4 {
			return true
		}
		a.ExpectAll(fmt.Sprintf(timeout+`,"to":%q,"stream_id":"s"}`, to), fmt.Sprintf(timeout+`,"to":%q,"stream_id":"<none>"}`, to))
		b.ExpectAll(fmt.Sprintf(timeout+`,"from":%q,"stream_id":"s"}`, from), fmt.Sprintf(timeout+`,"from":%q,"request_id":"r-1"}`, from))
		return false
	})
}
