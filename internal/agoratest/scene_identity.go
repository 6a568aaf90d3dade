package agoratest

import (
	"slices"
)

// identityScenes are who an agent is, and whose connection it has.
var identityScenes = []scenario{
	{"from is the bound id, whatever a client writes", ownName},
	{"a second connection of a live agent is refused, and the first lives", secondRefused},
	{"the resume token takes a session over at another edge", takenOver},
	{"a resume token that is wrong, used or another's takes nothing over", wrongToken},
	{"a wrong resume token within the grace is told", wrongTokenInGrace},
	{"many at once for one id: one gets it", manyAtOnce},
}

func ownName(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","from":"agent-9","payload":1}`)
	b.ExpectText(`{"type":"message","from":"agent-1","payload":1}`)
	a.Send(`{"type":"reply","from":"agent-9","to":"agent-2","payload":2}`)
	b.ExpectText(`{"type":"reply","from":"agent-1","payload":2}`)
}

func secondRefused(s *scene) {
	a, b := s.pair()
	c := s.open(2, "agent_id", "agent-1")
	c.ExpectText(`{"type":"error","code":"AGENT_EXISTS","message":"<any>"}`)
	c.ExpectClosed(4009)
	d := s.open(1)
	d.Send(`{"type":"agent.register","id":"msg_001","agent":{"id":"agent-1"}}`)
	d.ExpectText(`{"type":"error","code":"AGENT_EXISTS","message":"<any>","request_id":"msg_001"}`)
	d.ExpectClosed(4009)
	e := s.open(0) // the same edge as the incumbent's
	e.Send(`{"type":"register","id":"agent-1"}`)
	e.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	e.ExpectClosed(4009)
	b.Send(`{"type":"send","to":"agent-1","payload":1}`)
	a.Expect(`{"type":"message","payload":1}`)
	a.Barrier()
}

func halfDead(s *scene) {
	a, b := s.pair()
	a.Deafen()
	c, w := s.enter(2, "agent-1", "resume_token", "")
	a.AwaitClosed(4001)
	if w.Has("resumed") {
		s.Errorf("%s: want a new process for what it sends", w)
	}
	b.Send(`{"type":"send","to":"agent-1","payload":1}`)
	c.Expect(`{"type":"message","payload":1}`)
}

func takenOver(s *scene) {
	a, w := s.enter(0, "agent-1")
	b := s.agent(1, "agent-2")
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	c, w2 := s.enter(2, "agent-1", "resume_token", w.Text("resume_token"))
	a.AwaitClosed(4001)
	if w2.Raw("resumed") != "true" || w2.Text("resume_token") == w.Text("resume_token") {
		s.Errorf("%s: want the session resumed under a new token", w2)
	}
	c.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"on"}`, `{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"message_chunk","chunk":"on"}`, `{"type":"message_end"}`)
	d := s.open(0)
	d.Send(`{"type":"register","id":"agent-1","resume_token":` + Quote(w2.Text("resume_token")) + `}`)
	d.Expect(`{"type":"registered","id":"agent-1","resumed":true}`)
	c.AwaitClosed(4001)
}

func wrongToken(s *scene) {
	a, w := s.enter(0, "agent-1")
	c := s.open(1, "agent_id", "agent-1", "resume_token", "guess")
	c.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	c.ExpectClosed(4009)
	other := s.open(1, "token", s.tenant+"~other", "agent_id", "agent-1", "resume_token", w.Text("resume_token"))
	other.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	other.ExpectClosed(4009)
	a.Barrier()
	a2, _ := s.enter(1, "agent-1", "resume_token", w.Text("resume_token"))
	used := s.open(2, "agent_id", "agent-1", "resume_token", w.Text("resume_token"))
	used.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	used.ExpectClosed(4009)
	a2.Barrier()
}

func wrongTokenInGrace(s *scene) {
	a, w := s.enter(0, "agent-1")
	a.Drop()
	const wrong = `{"type":"error","code":"INVALID_REQUEST","message":"resume_token is not that of the session, which goes on for who registers without one"}`
	for _, token := range []string{"guess", w.Text("resume_token") + "x"} {
		c := s.open(1, "agent_id", "agent-1", "resume_token", token)
		c.Expect(wrong)
		c.ExpectClosed(1008)
	}
	d := s.open(2)
	d.Send(`{"type":"register","id":"agent-1","resume_token":"guess"}`)
	d.Expect(wrong)
	d.Send(`{"type":"register","id":"agent-1"}`)
	d.Expect(`{"type":"registered","id":"agent-1","resumed":"<none>"}`)
}

func manyAtOnce(s *scene) {
	var all []*Client
	for i := range 6 {
		all = append(all, s.open(i%3))
	}
	for _, c := range all {
		c.Send(`{"type":"register","id":"agent-1"}`)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.Take("an answer").Type())
	}
	slices.Sort(got)
	want := []string{"error", "error", "error", "error", "error", "registered"}
	if !slices.Equal(got, want) {
		s.Errorf("answers %q, want %q", got, want)
	}
}
