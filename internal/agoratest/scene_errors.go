package agoratest

import "strings"

// errorScenes are what the seeds leave undefined: one error frame each, and the connection kept.
var errorScenes = []scenario{
	{"what can't be understood is answered by one error each", misunderstood},
	{"an error names the request that it answers", errorNames},
	{"sending needs a registration", unregistered},
	{"a part of a stream that was never started is answered once", neverStarted},
	{"a stream that was refused is answered once, until it is started again", refusedOnce},
	{"a frame that is too large is skipped and the connection kept", tooLarge},
	{"a flood of errors closes the connection", flooded},
	{"duplicate keys, bad UTF-8 and half characters in ids, names and keys are refused", hostileText},
}

const invalid = `{"type":"error","code":"INVALID_REQUEST","message":"<any>"}`

func misunderstood(s *scene) {
	a, _ := s.pair()
	for _, f := range []string{
		``, `x`, `[]`, `"send"`, `{`, `{"type":"send",`, `{}`, `{"type":7}`, `{"type":"no.such.type"}`, `{"type":"Send","to":"agent-2"}`,
		`{"type":"send","payload":1}`, `{"type":"send","to":7}`, `{"type":"send","to":""}`, `{"type":"send","To":"agent-2"}`,
		`{"type":"send","to":"agent-2","stream":true}`, `{"type":"send","to":"agent-2","stream":"yes","stream_id":"s"}`,
		`{"type":"send_chunk","to":"agent-2","stream_id":"s"}`, `{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":7}`,
		`{"type":"send_chunk","to":"agent-2","chunk":"x"}`, `{"type":"send_end","to":"agent-2"}`,
		`{"type":"message","from":"agent-2","payload":1}`, `{"type":"agents","agents":[]}`,
		`{"type":"space.join"}`, `{"type":"space.publish","space":"general"}`, `{"type":"space.publish","space":"general","data":[]}`,
		`{"type":"send","to":"agent-2","payload":01}`, `{"type":"send","to":"agent-2","payload":1} {}`, `{"type":"ack"}`,
	} {
		a.Send(f)
		if got := a.Take(f); got.MatchText(invalid) != "" {
			s.Errorf("%q is answered %s, want %s", f, got, invalid)
		}
	}
	a.SendBinary([]byte(`{"type":"list"}`))
	a.ExpectText(invalid)
	a.Barrier()
}

func errorNames(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"space.join","id":"msg_002"}`)
	a.ExpectText(`{"type":"error","code":"INVALID_REQUEST","message":"<any>","request_id":"msg_002"}`)
	a.Send(`{"type":"nonsense","id":"msg_003"}`)
	a.ExpectText(`{"type":"error","code":"INVALID_REQUEST","message":"<any>","request_id":"msg_003"}`)
}

func unregistered(s *scene) {
	a := s.open(0)
	s.agent(1, "agent-2")
	for _, f := range []string{
		`{"type":"send","to":"agent-2","payload":1}`, `{"type":"reply","to":"agent-2","payload":1}`,
		`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"x"}`, `{"type":"ack","seq":1}`,
		`{"type":"space.join","space":"general"}`, `{"type":"space.publish","space":"general","data":{}}`,
	} {
		a.Send(f)
		a.ExpectText(invalid)
	}
	a.Send(`{"type":"register","id":"agent-1"}`)
	a.Expect(`{"type":"registered"}`)
}

func neverStarted(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"x"}`)
	a.Expect(`{"type":"error","code":"<any>","to":"agent-2","stream_id":"s"}`)
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"y"}`, `{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"t"}`)
	a.Expect(`{"type":"error","code":"<any>","to":"agent-2","stream_id":"t"}`)
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
	a.Barrier()
}

func refusedOnce(s *scene) {
	a, b := s.pair()
	a.Send(
		`{"type":"send","to":"agent-9","stream_id":"s","stream":true}`,
		`{"type":"send_chunk","to":"agent-9","stream_id":"s","chunk":"x"}`,
		`{"type":"send_chunk","to":"agent-9","stream_id":"s","chunk":"y"}`,
		`{"type":"send_end","to":"agent-9","stream_id":"s"}`)
	a.ExpectText(`{"type":"error","code":"AGENT_NOT_FOUND","message":"Agent 'agent-9' does not exist","to":"agent-9","stream_id":"s"}`)
	a.Barrier()
	s.agent(2, "agent-9")
	a.Send(`{"type":"send","to":"agent-9","stream_id":"s","stream":true}`, `{"type":"send","to":"agent-2","payload":1}`)
	b.Expect(`{"type":"message","payload":1}`)
	a.Barrier()
}

func tooLarge(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","payload":"` + strings.Repeat("x", 1<<20) + `"}`)
	a.Expect(`{"type":"error","code":"MESSAGE_TOO_LARGE"}`)
	almost := strings.Repeat("y", 1<<20-512)
	a.Send(`{"type":"send","to":"agent-2","payload":"` + almost + `"}`)
	b.Expect(`{"type":"message","payload":"` + almost + `"}`)
	a.Barrier()
}

func flooded(s *scene) {
	a := s.agent(0, "agent-1")
	a.Until("the connection is closed", func() bool { // a flood is so many within some seconds
		for range 200 {
			if a.Try("nonsense") != nil {
				return true
			}
		}
		return a.Gone() != nil
	})
	a.AwaitClosed(1008)
}

func hostileText(s *scene) {
	a, b := s.pair()
	for _, f := range []string{
		`{"type":"send","to":"agent-2","to":"agent-1","payload":1}`,
		`{"type":"send","to":"agent-2","payload":1,"payload":2}`,
		`{"type":"send","to":"agent-2","t\u006f":"agent-1","payload":1}`,
		`{"type":"send","type":"send","to":"agent-2"}`,
		`{"type":"send","to":"agent-\ud83d","payload":1}`,
		`{"type":"send","to":"agent-2","stream_id":"\ude00","stream":true}`,
		`{"type":"send","to":"agent-2","payload":1,"\ude00\ud83d":1}`,
		`{"type":"space.join","space":"\ud83d"}`,
	} {
		a.Send(f)
		if got := a.Take(f); got.MatchText(invalid) != "" {
			s.Errorf("%q is answered %s, want %s", f, got, invalid)
		}
	}
	a.Send("{\"type\":\"send\",\"to\":\"agent-2\",\"payload\":\"\xff\xfe\"}")
	a.Expect(invalid)
	a.Send(`{"type":"send","to":"agent-2","payload":"\ud83d\ude00"}`)
	if f := b.Expect(`{"type":"message"}`); f.Raw("payload") != `"\ud83d\ude00"` {
		s.Errorf("payload came as %s", f.Raw("payload"))
	}
}
