package agoratest

import (
	"fmt"
	"strings"
)

// spaceScenes are membership and the directory of spaces.
var spaceScenes = []scenario{
	{"a join is answered with the members and told to the others", joined},
	{"a leave is told to the others and answered where it has an id", left},
	{"a member that joins again is answered again, and nobody is told", joinedAgain},
	{"an agent that says goodbye leaves its spaces", leftByGoodbye},
	{"spaces are listed with type and count, agent.status always", listedSpaces},
	{"names follow the convention", spaceNames},
	{"what does not exist is SPACE_NOT_FOUND, in the words of the seed", spaceNotFound},
	{"only members publish", membersOnly},
	{"a space is created by hand too", created},
	{"a join may replay history", history},
	{"a join may resume from a position", joinedFrom},
	{"a registration may resume the spaces of its session", spacesResumed},
	{"events are confirmed by pong and ack like mail", spacesConfirmed},
	{"events that another edge delivered are confirmed where the session goes on", spacesConfirmedElsewhere},
	{"members come and go at all edges and everybody agrees", comeAndGo},
	{"a stray jsonrpc is accepted and never emitted", jsonrpc},
}

func joined(s *scene) {
	a, b, c := s.agent(0, "agent-001"), s.agent(1, "agent-002"), s.agent(2, "agent-003")
	a.Send(`{"type":"space.join","id":"msg_001","space":"general"}`)
	a.ExpectText(`{"type":"space.joined","id":"msg_001","space":"general","members":["agent-001"],"seq":"<any>"}`)
	b.Send(`{
  "type": "space.join",
  "id": "msg_002",
  "space": "general"
}`)
	b.ExpectText(`{
  "type": "space.joined",
  "id": "msg_002",
  "space": "general",
  "members": ["agent-001", "agent-002"]
}`)
	a.ExpectText(`{"type":"space.members","space":"general","members":["agent-001","agent-002"],"joined":"agent-002","left":null}`)
	c.Send(`{"type":"space.join","space":"general"}`)
	c.ExpectText(`{"type":"space.joined","space":"general","members":["agent-001","agent-002","agent-003"]}`)
	for _, m := range []*Client{a, b} {
		m.ExpectText(`{
  "type": "space.members",
  "space": "general",
  "members": ["agent-001", "agent-002", "agent-003"],
  "joined": "agent-003",
  "left": null
}`)
	}
	a.Barrier()
	b.Barrier()
	c.Barrier() // the joiner has its answer, and is told no more
}

func left(s *scene) {
	a, b := s.pair()
	c := s.agent(2, "agent-3")
	s.members("general", a, b, c)
	c.Send(`{
  "type": "space.leave",
  "id": "msg_003",
  "space": "general"
}`)
	c.ExpectText(`{"type":"space.left","id":"msg_003","space":"general"}`)
	for _, m := range []*Client{a, b} {
		m.ExpectText(`{"type":"space.members","space":"general","members":["agent-1","agent-2"],"joined":null,"left":"agent-3"}`)
	}
	c.Send(`{"type":"space.leave","id":"msg_004","space":"general"}`) // by no member
	c.ExpectText(`{"type":"space.left","id":"msg_004","space":"general"}`)
	b.Send(`{"type":"space.leave","space":"general"}`)
	a.Expect(`{"type":"space.members","members":["agent-1"],"left":"agent-2"}`)
	b.Barrier()
	a.Send(`{"type":"space.publish","space":"general","data":{"text":"alone"}}`)
	a.Expect(`{"type":"space.event"}`)
	c.Barrier()
}

func joinedAgain(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	b.Send(`{"type":"space.join","id":"again","space":"general"}`)
	b.ExpectText(`{"type":"space.joined","id":"again","space":"general","members":["agent-1","agent-2"],"seq":"<any>"}`)
	a.Send(`{"type":"space.publish","space":"general","data":{"text":"x"}}`)
	a.Expect(`{"type":"space.event"}`)
	b.Expect(`{"type":"space.event"}`)
	b.Barrier()
}

func leftByGoodbye(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	b.Close(1000)
	a.ExpectText(`{"type":"space.members","space":"general","members":["agent-1"],"joined":null,"left":"agent-2"}`)
}

func listedSpaces(s *scene) {
	a, b := s.pair()
	c := s.open(2) // also for who is nobody yet
	s.members("general", a, b)
	s.members("task.build", a)
	c.Send(`{"type":"space.list","id":"msg_005"}`)
	c.ExpectText(`{"type":"space.list","id":"msg_005","spaces":[
		{"id":"agent.status","type":"system","member_count":0},
		{"id":"general","type":"public","member_count":2},
		{"id":"task.build","type":"public","member_count":1}]}`)
}

func spaceNames(s *scene) {
	a := s.agent(0, "agent-1")
	for _, name := range []string{"a", "general", "a-b_c-9", "task.x", "task.build.9", "agent.status", "agent.x", "file.changes", "mcp.tools"} {
		a.Send(`{"type":"space.join","id":"j","space":` + Quote(name) + `}`)
		a.Expect(`{"type":"space.joined","id":"j","space":` + Quote(name) + `}`)
	}
	for _, name := range []string{"General", "a b", "a.b", "é", "task.", "task", "x/y", ".", "agent", "*", "a>b", strings.Repeat("x", 300)} {
		if name == "task" || name == "agent" {
			continue // plain words are public
		}
		for _, verb := range []string{"space.join", "space.create", "space.leave"} {
			a.Send(fmt.Sprintf(`{"type":"%s","id":"j","space":%s}`, verb, Quote(name)))
			a.Await(`{"type":"error","code":"INVALID_REQUEST","request_id":"j"}`)
		}
	}
}

func spaceNotFound(s *scene) {
	a := s.agent(0, "agent-1")
	want := `{
  "type": "error",
  "code": "SPACE_NOT_FOUND",
  "message": "Space 'unknown' does not exist",
  "request_id": "msg_002"
}`
	for _, f := range []string{
		`{"type":"space.leave","id":"msg_002","space":"unknown"}`,
		`{"type":"space.publish","id":"msg_002","space":"unknown","data":{"text":"x"}}`,
		`{"type":"space.event.cancel","id":"msg_002","space":"unknown","event_id":"evt_001"}`,
	} {
		a.Send(f)
		a.ExpectText(want)
	}
}

func membersOnly(s *scene) {
	a, b := s.pair()
	s.members("general", a)
	b.Send(`{"type":"space.publish","id":"p","space":"general","data":{"text":"x"}}`)
	b.ExpectText(`{"type":"error","code":"FORBIDDEN","message":"<any>","request_id":"p"}`)
	a.Barrier()
	s.members("agent.status", b)
	b.Send(`{"type":"space.publish","id":"p","space":"agent.status","data":{"agent":"agent-9","status":"online"}}`)
	b.Await(`{"type":"error","code":"FORBIDDEN","request_id":"p"}`)
}

func created(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"space.create","id":"c","space":"room"}`)
	a.ExpectText(`{"type":"space.created","id":"c","space":"room"}`)
	a.Send(`{"type":"space.create","id":"d","space":"room"}`)
	a.ExpectText(`{"type":"space.created","id":"d","space":"room"}`)
	a.Send(`{"type":"space.create","id":"e","space":"mcp.tools"}`)
	a.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"e"}`)
	a.Send(`{"type":"space.list"}`)
	a.Expect(`{"type":"space.list","spaces":[
		{"id":"agent.status","type":"system","member_count":0},{"id":"room","type":"public","member_count":0}]}`)
}

// talk has c publish numbered events and get them.
func (s *scene) talk(c *Client, from, until int) {
	s.Helper()
	for i := from; i < until; i++ {
		c.Send(fmt.Sprintf(`{"type":"space.publish","space":"general","data":{"timestamp":%d}}`, i))
		c.Expect(fmt.Sprintf(`{"type":"space.event","data":{"from":"<any>","timestamp":%d}}`, i))
	}
}

// heard has c get numbered events, and returns the last.
func (s *scene) heard(c *Client, from, until int, more string) (f Frame) {
	s.Helper()
	for i := from; i < until; i++ {
		f = c.Expect(fmt.Sprintf(`{"type":"space.event","space":"general","data":{"from":"<any>","timestamp":%d}%s}`, i, more))
	}
	return f
}

func history(s *scene) {
	a, b := s.pair()
	s.members("general", a)
	s.talk(a, 0, 10)
	b.Send(`{"type":"space.join","id":"j","space":"general","history":4}`)
	j := b.Expect(`{"type":"space.joined","id":"j","seq":"<any>"}`)
	if f := s.heard(b, 6, 7, ""); f.Seq() <= j.Seq() {
		s.Errorf("joined at %d, and got the event %d", j.Seq(), f.Seq())
	}
	s.heard(b, 7, 10, "")
	a.Expect(`{"type":"space.members","joined":"agent-2"}`)
	s.talk(a, 10, 11)
	b.Await(`{"type":"space.event","data":{"from":"agent-1","timestamp":10}}`)
	c := s.agent(2, "agent-3")
	c.Send(`{"type":"space.join","space":"general","history":1000}`)
	c.Expect(`{"type":"space.joined"}`)
	c.Await(`{"type":"space.event","data":{"from":"agent-1","timestamp":0}}`)
	c.Await(`{"type":"space.event","data":{"from":"agent-1","timestamp":10}}`)
}

func joinedFrom(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	s.talk(a, 0, 6)
	last := s.heard(b, 0, 3, "").Seq()
	s.heard(b, 3, 6, "")
	b.Send(fmt.Sprintf(`{"type":"space.join","id":"j","space":"general","last_seq":%d}`, last))
	b.ExpectText(fmt.Sprintf(`{"type":"space.joined","id":"j","space":"general","members":["agent-1","agent-2"],"seq":%d}`, last))
	s.heard(b, 3, 6, "")
	s.talk(a, 6, 7)
	s.heard(b, 6, 7, "")
}

func spacesResumed(s *scene) {
	a, b := s.pair()
	b.Deafen()
	s.members("general", a, b)
	s.talk(a, 0, 4)
	last := s.heard(b, 0, 2, "").Seq()
	s.heard(b, 2, 4, "")
	b.Drop()
	s.talk(a, 4, 6)
	c := s.open(2)
	c.Send(fmt.Sprintf(`{"type":"agent.register","agent":{"id":"agent-2"},"spaces":{"general":%d}}`, last))
	c.Expect(`{"type":"agent.registered","resumed":"<none>"}`)
	s.heard(c, 2, 6, `,"redelivered":"<none>"`)
	s.talk(a, 6, 7)
	s.heard(c, 6, 7, "")
	a.Barrier()
}

func spacesConfirmed(s *scene) {
	a, b := s.pair()
	b.Deafen()
	s.members("general", a, b)
	s.talk(a, 0, 4)
	f := s.heard(b, 0, 2, "")
	s.heard(b, 2, 4, "")
	b.Send(fmt.Sprintf(`{"type":"ack","space":"general","seq":%d}`, f.Seq()))
	b.Barrier()
	b.Drop()
	s.talk(a, 4, 6)
	b = s.agent(2, "agent-2")
	s.heard(b, 2, 4, `,"redelivered":true`)
	s.heard(b, 4, 6, "")
	b.Send(`{"type":"ack","id":"x","space":"general","seq":9007199254740000}`)
	b.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"x"}`)
}

func spacesConfirmedElsewhere(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	s.talk(a, 0, 4)
	first := s.heard(b, 0, 1, "").Seq()
	last := s.heard(b, 1, 4, "").Seq()
	b.Drop()
	b = s.open(2)
	b.Send(
		fmt.Sprintf(`{"type":"agent.register","agent":{"id":"agent-2"},"spaces":{"general":%d}}`, first),
		fmt.Sprintf(`{"type":"ack","space":"general","seq":%d}`, last),
	)
	s.tokens["agent-2"] = b.Expect(`{"type":"agent.registered","resumed":"<none>"}`).Text("resume_token")
	s.heard(b, 1, 4, "")
	b.Barrier()
	b.Drop()
	s.talk(a, 4, 6)
	b = s.agent(0, "agent-2")
	s.heard(b, 4, 6, "")
	b.Barrier()
}

func comeAndGo(s *scene) {
	watcher := s.agent(0, "watcher")
	s.members("general", watcher)
	var all []*Client
	for i := range 9 {
		c := s.agent(i%3, fmt.Sprintf("agent-%d", i))
		all = append(all, c)
		c.Send(`{"type":"space.join","space":"general"}`)
	}
	for range all {
		watcher.Expect(`{"type":"space.members"}`)
	}
	for _, c := range all {
		c.Send(`{"type":"space.leave","space":"general"}`)
	}
	var last Frame
	for range all {
		last = watcher.Expect(`{"type":"space.members"}`)
	}
	if d := last.Match(`{"members":["watcher"]}`); d != "" {
		s.Errorf("%s: %s", last, d)
	}
	watcher.Barrier()
}

func jsonrpc(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"jsonrpc":"2.0","type":"space.join","id":"j","space":"general"}`)
	a.ExpectText(`{"type":"space.joined","id":"j","space":"general","members":["agent-1"],"jsonrpc":"<none>"}`)
}
