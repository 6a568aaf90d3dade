package agoratest

import (
	"strings"
	"time"
)

// deathScenes are what becomes of agents whose edge dies, while their grace is long.
var deathScenes = []scenario{
	{"agents of a dead edge go on elsewhere, with streams and spaces", deadEdge},
	{"a stream without indexes does not go on after an edge's death", deadEdgeUnindexed},
	{"an edge that was cut off for long closes what others have taken", zombie},
}

// hastyScenes need a short grace.
var hastyScenes = []scenario{
	{"a connection that is cut ends its session after the grace, and aborts once", abortedAfterGrace},
	{"members see a leave when the session ends", leaveAfterGrace},
	{"an agent that answers no ping loses its id to the next one", halfDead},
	{"empty public spaces vanish after a while", emptySpaceVanishes},
	{"agents of a dead edge that do not return are gone, once", deadEdgeReaped},
}

func abortedAfterGrace(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	begin := time.Now()
	a.Drop()
	b.ExpectText(`{"type":"error","code":"STREAM_ABORTED","message":"<any>","from":"agent-1","stream_id":"s"}`)
	if took := time.Since(begin); took < s.opts.Grace {
		s.Errorf("aborted after %v, within the grace", took)
	}
	a, w := s.enter(2, "agent-1")
	if w.Raw("resumed") == "true" {
		s.Errorf("%s: want a new session", w)
	}
	s.startStream(a, b)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s"}`)
	b.Expect(`{"type":"message_end"}`)
}

func leaveAfterGrace(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	b.Drop()
	a.ExpectText(`{"type":"space.members","space":"general","members":["agent-1"],"joined":null,"left":"agent-2"}`)
	s.away(a, "agent-2")
	a.Barrier()
}

func emptySpaceVanishes(s *scene) {
	a := s.agent(0, "agent-1")
	s.members("room", a)
	a.Send(`{"type":"space.leave","id":"l","space":"room"}`)
	a.Expect(`{"type":"space.left"}`)
	a.Until("the empty space vanishes", func() bool {
		a.Send(`{"type":"space.list"}`)
		return !strings.Contains(string(a.Expect(`{"type":"space.list"}`)), `"room"`)
	})
	a.Send(`{"type":"space.leave","id":"l","space":"room"}`)
	a.Expect(`{"type":"error","code":"SPACE_NOT_FOUND"}`)
}

// untilBound dials edge k as an agent whose old edge is dead: a while passes before it may.
func (s *scene) untilBound(k int, id string, query ...string) (*Client, Frame) {
	s.Helper()
	registered := func(f Frame) bool { return f.Type() == "agent.registered" }
	c, w := s.ask(k, id, registered, query)
	if !registered(w) {
		s.Fatalf("%s can't connect: %s", id, w)
	}
	return c, w
}

func deadEdge(s *scene) {
	k := s.AddEdge()
	a, w := s.enter(k, "agent-1")
	b := s.agent(1, "agent-2")
	s.members("general", a, b)
	a.Send(startIndexed)
	b.Expect(`{"type":"message","stream_id":"s"}`)
	s.indexed(a, 1, 2)
	s.gotIndexed(b, 1, 2)
	s.LapseEdge(k)
	b.Send(`{"type":"send","to":"agent-1","payload":0}`)
	a, w2 := s.untilBound(2, "agent-1", "resume_token", w.Text("resume_token"))
	if w2.Raw("resumed") != "true" {
		s.Errorf("%s: want the session to go on", w2)
	}
	s.mailed(a, 0, 1, "")
	a.Send(startIndexed)
	s.indexed(a, 1, 2, 3)
	a.Send(`{"type":"send_end","to":"agent-2","stream_id":"s","index":4}`)
	s.gotIndexed(b, 3)
	b.Expect(`{"type":"message_end","stream_id":"s"}`)
	b.Send(`{"type":"space.publish","space":"general","data":{"timestamp":1}}`)
	b.Expect(`{"type":"space.event"}`)
	a.Await(`{"type":"space.event","data":{"from":"agent-2","timestamp":1}}`)
}

func deadEdgeReaped(s *scene) {
	k := s.AddEdge()
	a, b := s.agent(k, "agent-1"), s.agent(1, "agent-2")
	s.members("general", a, b)
	s.startStream(a, b)
	s.LapseEdge(k)
	b.ExpectAll(
		`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`,
		`{"type":"space.members","members":["agent-2"],"joined":null,"left":"agent-1"}`)
	s.away(b, "agent-1")
	a, _ = s.untilBound(2, "agent-1")
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
	b.Barrier()
}

func deadEdgeUnindexed(s *scene) {
	k := s.AddEdge()
	a, w := s.enter(k, "agent-1")
	b := s.agent(1, "agent-2")
	s.startStream(a, b)
	s.LapseEdge(k)
	a, _ = s.untilBound(2, "agent-1", "resume_token", w.Text("resume_token"))
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"2"}`)
	b.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`)
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
}

func zombie(s *scene) {
	k := s.AddDoomed(5 * time.Second)
	s.agent(k, "agent-1")
	b := s.agent(1, "agent-2")
	s.ParalyseEdge(k)
	a2, _ := s.untilBound(2, "agent-1")
	s.MendEdge(k)
	b.Until("the edge is ready again", func() bool { return s.Node(k).Ready() == nil })
	b.Send(`{"type":"send","to":"agent-1","payload":0}`)
	s.mailed(a2, 0, 1, "")
	b.Until("an agent of the edge sends", func() bool { // its lease is short still
		c, _ := s.untilBound(k, "agent-3")
		_ = c.Try(`{"type":"send","id":"m","to":"agent-1","payload":1}`)
		f, _ := c.Next(patience)
		c.Drop()
		return f.Type() == "receipt"
	})
	s.mailed(a2, 1, 2, "")
	a2.Barrier()
}
