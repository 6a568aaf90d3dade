package agoratest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// registerScenes are how a connection gets an id, and what the directory shows.
var registerScenes = []scenario{
	{"an id in the URL binds, and is confirmed unasked", boundByURL},
	{"agent.register binds and is answered", boundByFrame},
	{"register binds in the short dialect, again is an update", boundShort},
	{"list works before register, leaves absent endpoints out and says since when", listed},
	{"agents are found by what they can do, at every edge, and a card that has changed is another one", found},
	{"the name defaults to metadata.name, else to the id", namedByMetadata},
	{"an agent that leaves is gone from the directory of every edge", unlisted},
	{"ids may hold spaces and any printable character, up to 128", oddIDs},
	{"bad ids are refused", badIDs},
	{"a token is asked for before the upgrade, in URL or header", tokens},
	{"a token that may not be an agent is refused", limitedToken},
	{"pages of other origins are turned away", origins},
	{"tenants do not see each other", apart},
	{"agent.heartbeat is answered by none and keeps the connection", heartbeats},
}

func boundByURL(s *scene) {
	a := s.open(0, "agent_id", "agent-001")
	f := a.ExpectText(`{"type":"agent.registered","agent":{"id":"agent-001","connection_id":"<any>"},"id":"<none>"}`)
	s.checkWelcome(f)
}

// checkWelcome checks the extensions of an answer to a registration.
func (s *scene) checkWelcome(f Frame) {
	s.Helper()
	for _, field := range []string{"resume_token", "last_seq", "heartbeat_interval"} {
		if !f.Has(field) {
			s.Errorf("%s has no %s", f, field)
		}
	}
	name := regexp.MustCompile(`"connection_id":"ws-[0-9]+"`)
	if f.Type() == "agent.registered" && !name.MatchString(string(f)) {
		s.Errorf("connection id of %s is not ws- and digits", f)
	}
}

func boundByFrame(s *scene) {
	a := s.open(0)
	a.Send(`{
  "type": "agent.register",
  "id": "msg_001",
  "agent": {
    "id": "agent-001",
    "type": "process",
    "capabilities": ["text", "code_execution"],
    "metadata": {
      "version": "1.0.0",
      "os": "linux"
    }
  }
}`)
	s.checkWelcome(a.ExpectText(`{
  "type": "agent.registered",
  "id": "msg_001",
  "agent": { "id": "agent-001", "connection_id": "<any>" }
}`))
	a.Send(`{"type":"agent.register","id":"msg_002","agent":{"id":"agent-001"}}`)
	a.ExpectText(`{"type":"agent.registered","id":"msg_002","agent":{"id":"agent-001","connection_id":"<any>"}}`)
	a.Send(`{"type":"agent.register","id":"msg_003","agent":{"id":"agent-002"}}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","message":"<any>","request_id":"msg_003"}`)
	a.Barrier()
}

func boundShort(s *scene) {
	a, b := s.open(0), s.agent(1, "watcher")
	a.Send(`{"type":"register","id":"agent-1","name":"One"}`)
	s.checkWelcome(a.ExpectText(`{"type":"registered","id":"agent-1"}`))
	a.Send(`{"type":"register","id":"agent-1","name":"Uno","endpoint":"http://one"}`)
	a.ExpectText(`{"type":"registered","id":"agent-1"}`)
	b.Send(`{"type":"list"}`)
	b.ExpectText(`{"type":"agents","agents":[
		{"id":"agent-1","name":"Uno","endpoint":"http://one","registered_at":"<any>"},
		{"id":"watcher","name":"watcher","registered_at":"<any>"}]}`)
	a.Send(`{"type":"register","id":"agent-2"}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
}

func listed(s *scene) {
	a := s.open(0)
	a.Send(`{"type":"list"}`)
	a.ExpectText(`{"type":"agents","agents":[]}`)
	begin := time.Now()
	s.agent(1, "agent-2")
	f := s.answers(a, `{"type":"list","id":"q"}`, `{"type":"agents","id":"q","agents":[{"id":"agent-2","name":"agent-2","registered_at":"<any>"}]}`)
	_, at, _ := strings.Cut(string(f), `"registered_at":"`)
	at, _, _ = strings.Cut(at, `"`)
	when, err := time.Parse(time.RFC3339, at)
	const exact = time.Minute // so well do edges know the servers' time, whatever their own clock says
	if err != nil || !strings.HasSuffix(at, "Z") || when.Before(begin.Add(-exact)) || when.After(time.Now().Add(exact)) {
		s.Errorf("registered_at %q is not now in RFC 3339 UTC", at)
	}
}

// answers asks until the answer is as wanted, which it returns: the directory of another edge is right a moment later.
func (s *scene) answers(c *Client, ask, want string) (f Frame) {
	s.Helper()
	c.Until("the answer is "+want, func() bool {
		c.Send(ask)
		f = c.Take("the answer to " + ask)
		return f.MatchText(want) == ""
	})
	return f
}

func found(s *scene) {
	a, b, c := s.open(0), s.open(1), s.open(2)
	s.answers(c, `{"type":"agents.find","skill":"translate"}`, `{"type":"agents.found","agents":[]}`)
	a.Send(`{"type":"agent.register","agent":{"id":"agent-1","domain":"languages","description":"Knows contracts",
		"skills":["translate",{"name":"summarize","description":"In a line","schema":{ "type":"object" }}],"tools":[{"name":"grep"}]}}`)
	a.Expect(`{"type":"agent.registered"}`)
	b.Send(`{"type":"agent.register","agent":{"id":"agent-2","metadata":{"name":"A translator of poems"},"tools":["translate"]}}`)
	b.Expect(`{"type":"agent.registered"}`)
	one := `{"id":"agent-1","name":"agent-1","registered_at":"<any>","status":"online","dialect":"agora","domain":"languages","description":"Knows contracts",
		"skills":[{"name":"translate"},{"name":"summarize","description":"In a line"}],"tools":[{"name":"grep"}]}`
	two := `{"id":"agent-2","name":"A translator of poems","registered_at":"<any>","status":"online","dialect":"agora","tools":[{"name":"translate"}]}`
	s.answers(c, `{"type":"agents.find","id":"f","skill":"Translate"}`, `{"type":"agents.found","id":"f","agents":[`+one+`,`+two+`]}`)
	c.Send(`{"type":"agents.find","goal":"help me with contracts and grep","limit":1}`)
	c.ExpectText(`{"type":"agents.found","agents":[` + one + `]}`)
	c.Send(`{"type":"agents.find","to":"agent-1"}`)
	if f := c.Take("the whole card"); f.Type() != "agents.found" || !strings.Contains(string(f), `"schema":{ "type":"object" }`) {
		s.Errorf("%s has no schema as it was sent", f)
	}
	c.Send(`{"type":"agents.find","id":"g","to":"nobody"}`, `{"type":"agents.find","id":"h","skill":"x","limit":1000}`, `{"type":"agents.find","id":"i"}`)
	c.Expect(`{"type":"error","code":"AGENT_NOT_FOUND","request_id":"g","to":"nobody"}`)
	c.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"h"}`)
	c.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"i"}`)
	a.Send(`{"type":"agent.register","agent":{"id":"agent-1","skills":["cook"]}}`)
	a.Expect(`{"type":"agent.registered"}`)
	s.answers(c, `{"type":"agents.find","skill":"translate"}`, `{"type":"agents.found","agents":[`+two+`]}`)
	deep := strings.Repeat(`{"a":`, 32) + `1` + strings.Repeat(`}`, 32)
	a.Send(`{"type":"agent.register","id":"r","agent":{"id":"agent-1","skills":["x",{"name":"y","schema":{"b":` + deep + `}}]}}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","message":"skills[1].schema is deeper than 32","request_id":"r"}`)
	a.Barrier()
}

func namedByMetadata(s *scene) {
	a, b := s.open(0), s.open(1)
	a.Send(`{"type":"agent.register","agent":{"id":"agent-1","metadata":{"name":"The One"}}}`)
	a.Expect(`{"type":"agent.registered"}`)
	b.Send(`{"type":"agent.register","agent":{"id":"agent-2","metadata":{"name":7}}}`)
	b.Expect(`{"type":"agent.registered"}`)
	b.Send(`{"type":"list"}`)
	b.Expect(`{"type":"agents","agents":[
		{"id":"agent-1","name":"The One","registered_at":"<any>"},{"id":"agent-2","name":"agent-2","registered_at":"<any>"}]}`)
}

func unlisted(s *scene) {
	a, b := s.pair()
	b.Close(1000)
	s.away(a, "agent-2")
	s.away(s.open(2), "agent-2")
}

func oddIDs(s *scene) {
	for i, id := range []string{"Jane Doe", "a.b>c*d", "{x}:y=z%20", "日本語 エージェント", `quo"te\slash`, strings.Repeat("é", 128)} {
		self := fmt.Sprintf("agent-%d", i)
		a, b := s.agent(i%3, self), s.agent((i+1)%3, id)
		a.Send(`{"type":"send","to":` + Quote(id) + `,"payload":1}`)
		b.Expect(`{"type":"message","from":"` + self + `","payload":1}`)
		b.Send(`{"type":"reply","to":"` + self + `","payload":2}`)
		a.Expect(`{"type":"reply","from":` + Quote(id) + `,"payload":2}`)
	}
}

func badIDs(s *scene) {
	a := s.open(0)
	for _, id := range []string{`""`, `"a\nb"`, `"` + strings.Repeat("x", 129) + `"`, `7`, `null`, `"agora"`} {
		a.Send(`{"type":"agent.register","id":"m","agent":{"id":` + id + `}}`)
		a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"m"}`)
		a.Send(`{"type":"register","id":` + id + `}`)
		a.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
	}
	a.Barrier()
	for _, id := range []string{"a\nb", "agora"} {
		b := s.open(0, "agent_id", id)
		b.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
		b.AwaitClosed(1008)
	}
}

func tokens(s *scene) {
	_, resp, err := TryConnect(s.T, s.dialer, s.URL(0), "agent_id=agent-1", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		s.Fatalf("without a token: %v, %v, want 401", resp, err)
	}
	a := Connect(s.T, s.dialer, s.URL(0), "agent_id=agent-1", http.Header{"Authorization": {"Bearer " + s.tenant}})
	a.Expect(`{"type":"agent.registered","agent":{"id":"agent-1","connection_id":"<any>"}}`)
	b := s.agent(1, "agent-2")
	b.Send(`{"type":"send","to":"agent-1","payload":1}`)
	a.Expect(`{"type":"message","from":"agent-2"}`)
}

func limitedToken(s *scene) {
	a := s.open(0, "token", s.tenant+"~limited")
	a.Send(`{"type":"register","id":"agent-2"}`)
	a.Expect(`{"type":"error","code":"FORBIDDEN"}`)
	a.Send(`{"type":"register","id":"bot-7"}`)
	a.ExpectText(`{"type":"registered","id":"bot-7"}`)
	b := s.open(0, "token", s.tenant+"~limited", "agent_id", "agent-2")
	b.Expect(`{"type":"error","code":"FORBIDDEN"}`)
	b.AwaitClosed(1008)
}

func origins(s *scene) {
	q := s.query(nil)
	_, resp, err := TryConnect(s.T, s.dialer, s.URL(0), q, http.Header{"Origin": {"https://elsewhere.example"}})
	if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
		s.Fatalf("page of another origin: %v, %v, want 403", resp, err)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(s.URL(0), "ws://"), "/ws")
	Connect(s.T, s.dialer, s.URL(0), q, http.Header{"Origin": {"http://" + host}}).Barrier()
}

func apart(s *scene) {
	a := s.agent(0, "agent-1")
	other := s.open(1, "agent_id", "agent-2", "token", s.tenant+"-other")
	other.Expect(`{"type":"agent.registered"}`)
	a.Send(`{"type":"send","to":"agent-2","payload":1}`)
	a.Expect(`{"type":"error","code":"AGENT_NOT_FOUND","to":"agent-2"}`)
	a.Send(`{"type":"list"}`)
	a.Expect(`{"type":"agents","agents":[{"id":"agent-1","name":"agent-1","registered_at":"<any>"}]}`)
	s.members("general", a)
	s.members("general", other)
	a.Send(`{"type":"space.publish","space":"general","data":{"text":"x"}}`)
	a.Expect(`{"type":"space.event"}`)
	other.Barrier()
}

func heartbeats(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{
  "type": "agent.heartbeat",
  "timestamp": 1234567890
}`)
	a.Barrier()
	a.Until("the edge beats too", func() bool { return a.Heartbeats() > 0 })
}
