package agoratest

// systemScenes are the spaces in which the server speaks.
var systemScenes = []scenario{
	{"agent.status tells who comes and goes", status},
	{"who has the right publishes into system spaces", systemPublisher},
	{"a short absence is no news in agent.status", shortAbsence},
}

func status(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"space.join","id":"j","space":"agent.status"}`)
	a.Await(`{"type":"space.joined","id":"j","space":"agent.status"}`)
	b := s.agent(1, "agent-2")
	f := a.Await(`{"type":"space.event","space":"agent.status","data":{"agent":"agent-2","status":"online","timestamp":"<any>"}}`)
	if d := f.MatchText(`{"type":"space.event","space":"agent.status","data":{"agent":"agent-2","status":"online","timestamp":"<any>"}}`); d != "" {
		s.Errorf("%s: %s", f, d)
	}
	b.Send(`{"type":"agent.register","agent":{"id":"agent-2","skills":["cook"]}}`, `{"type":"agent.register","agent":{"id":"agent-2","skills":["cook"]}}`)
	a.ExpectText(`{"type":"space.event","space":"agent.status","data":{"agent":"agent-2","status":"updated","timestamp":"<any>"}}`)
	b.Expect(`{"type":"agent.registered"}`)
	b.Expect(`{"type":"agent.registered"}`)
	b.Close(1000)
	a.ExpectText(`{"type":"space.event","space":"agent.status","data":{"agent":"agent-2","status":"offline","timestamp":"<any>"}}`)
}

func systemPublisher(s *scene) {
	a := s.agent(0, "agent-1")
	b := s.open(1, "token", s.tenant+"~system", "agent_id", "agent-2")
	b.Expect(`{"type":"agent.registered"}`)
	s.members("file.changes", a, b)
	b.Send(`{"type":"space.publish","space":"file.changes","data":{"path":"/x","timestamp":1}}`)
	a.ExpectText(`{"type":"space.event","space":"file.changes","data":{"from":"agent-2","path":"/x","timestamp":1}}`)
	a.Send(`{"type":"space.publish","id":"p","space":"file.changes","data":{"path":"/y"}}`)
	a.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"p"}`)
}

func shortAbsence(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"space.join","space":"agent.status","history":100}`)
	a.Await(`{"type":"space.event","data":{"agent":"agent-2","status":"online","timestamp":"<any>"}}`)
	b.Drop()
	b = s.agent(2, "agent-2")
	c := s.agent(2, "agent-3")
	a.Expect(`{"type":"space.event","data":{"agent":"agent-3","status":"online","timestamp":"<any>"}}`)
	c.Close(1000)
	a.Expect(`{"type":"space.event","data":{"agent":"agent-3","status":"offline","timestamp":"<any>"}}`)
	b.Barrier()
}
