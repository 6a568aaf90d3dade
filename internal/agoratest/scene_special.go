package agoratest

import (
	"fmt"
	"strings"
	"time"
)

// hastyScenes need a short grace.
var hastyScenes = []scenario{
	{"a connection that is cut ends its session after the grace, and aborts once", abortedAfterGrace},
	{"members see a leave when the session ends", leaveAfterGrace},
	{"empty public spaces vanish after a while", emptySpaceVanishes},
	{"agents of a dead edge go on elsewhere, with streams and spaces", deadEdge},
	{"agents of a dead edge that do not return are gone, once", deadEdgeReaped},
	{"a stream without indexes does not go on after an edge's death", deadEdgeUnindexed},
	{"an edge that was cut off for long closes what others have taken", zombie},
}

func abortedAfterGrace(s *scene) {
	a, b := s.pair()
	s.startStream(a, b)
	begin := time.Now()
	a.Drop()
	b.ExpectText(`{"type":"error","code":"STREAM_ABORTED","message":"<any>","from":"agent-1","stream_id":"s"}`)
	if took := time.Since(begin); took < 300*time.Millisecond {
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
	var w Frame
	for range 20 {
		c := s.open(k, append([]string{"agent_id", id}, query...)...)
		if w = c.Take("a welcome"); w.Type() == "agent.registered" {
			return c, w
		}
		c.Drop()
		<-time.After(100 * time.Millisecond)
	}
	s.Fatalf("%s can't connect: %s", id, w)
	return nil, ""
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
	s.CutEdge(k)
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
	s.CutEdge(k)
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
	s.CutEdge(k)
	a, _ = s.untilBound(2, "agent-1", "resume_token", w.Text("resume_token"))
	a.Send(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"2"}`)
	b.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`)
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":"marker"}`)
}

func zombie(s *scene) {
	k := s.AddEdge()
	s.agent(k, "agent-1")
	b := s.agent(1, "agent-2")
	s.ParalyseEdge(k)
	a2, _ := s.untilBound(2, "agent-1")
	s.MendEdge(k)
	b.Until("the edge is ready again", func() bool { return s.Node(k).Ready() == nil })
	b.Send(`{"type":"send","to":"agent-1","payload":0}`)
	s.mailed(a2, 0, 1, "")
	c, _ := s.untilBound(k, "agent-3")
	c.Send(`{"type":"send","to":"agent-1","payload":1}`)
	s.mailed(a2, 1, 2, "")
	a2.Barrier()
}

// strictScenes need other rules: no mailbox, no spaces of their own accord, two
// members at most, small frames and a rate.
var strictScenes = []scenario{
	{"without mailboxes an agent that is away is AGENT_OFFLINE", offline},
	{"without auto-create a join needs a space.create", noAutoCreate},
	{"a space takes no more members than it may, across edges", spaceFull},
	{"over the rate one-shots are refused and chunks slowed", rated},
	{"a frame beyond all bounds closes the connection", farTooLarge},
}

func offline(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","payload":0}`)
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, s.mailed(b, 0, 1, "").Seq()))
	b.Barrier()
	b.Close(1000)
	s.away(a, "agent-2")
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":1}`)
	a.ExpectText(`{"type":"error","code":"AGENT_OFFLINE","message":"<any>","request_id":"m","to":"agent-2"}`)
	b = s.agent(0, "agent-2")
	b.Barrier()
	a.Send(`{"type":"send","to":"agent-2","payload":2}`)
	s.mailed(b, 2, 3, "")
}

func noAutoCreate(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"space.join","id":"j","space":"room"}`)
	a.ExpectText(`{"type":"error","code":"SPACE_NOT_FOUND","message":"Space 'room' does not exist","request_id":"j"}`)
	b.Send(`{"type":"space.create","id":"c","space":"room"}`)
	b.ExpectText(`{"type":"space.created","id":"c","space":"room"}`)
	s.members("room", a, b)
	s.members("agent.status", a) // system spaces come to be by themselves
}

func spaceFull(s *scene) {
	var all []*Client
	for i := range 6 {
		all = append(all, s.agent(i%2, fmt.Sprintf("agent-%d", i)))
	}
	all[0].Send(`{"type":"space.create","id":"c","space":"room"}`)
	all[0].Expect(`{"type":"space.created"}`)
	for _, c := range all {
		c.Send(`{"type":"space.join","id":"j","space":"room"}`)
	}
	in := 0
	for _, c := range all {
		f := c.Take("an answer")
		if f.Type() == "space.joined" {
			in++
		} else if d := f.MatchText(`{"type":"error","code":"SPACE_FULL","message":"<any>","request_id":"j"}`); d != "" {
			s.Errorf("%s: %s", f, d)
		}
	}
	if in != 2 {
		s.Errorf("%d agents are in, want 2", in)
	}
}

func rated(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","stream_id":"s","stream":true}`)
	begin := time.Now()
	const parts = 80
	for i := range parts {
		a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"%d"}`, i))
	}
	b.Expect(`{"type":"message"}`)
	for i := range parts {
		b.Expect(fmt.Sprintf(`{"type":"message_chunk","chunk":"%d"}`, i))
	}
	if took := time.Since(begin); took < 800*time.Millisecond {
		s.Errorf("%d chunks at 40 a second took %v", parts, took)
	}
	for i := range 60 {
		a.Send(fmt.Sprintf(`{"type":"send","id":"m","to":"agent-2","payload":%d}`, i))
	}
	f := a.Await(`{"type":"error","code":"RATE_LIMITED","request_id":"m","to":"agent-2","retry_after_ms":"<any>"}`)
	if f.Uint("retry_after_ms") == 0 {
		s.Errorf("%s: want to know when to try again", f)
	}
}

func farTooLarge(s *scene) {
	a := s.agent(0, "agent-1")
	a.Send(`{"type":"send","to":"agent-1","payload":"` + strings.Repeat("x", 100<<10) + `"}`)
	a.Expect(`{"type":"error","code":"MESSAGE_TOO_LARGE"}`)
	a.Barrier()
	_ = a.Try(`{"type":"send","to":"agent-1","payload":"` + strings.Repeat("x", 300<<10) + `"}`) // it is closed meanwhile
	a.AwaitClosed(1009)
}

// smallScenes need a mailbox of a few records.
var smallScenes = []scenario{
	{"what retention has passed is told by a gap", gapTold},
	{"a mailbox that is nearly full refuses one-shots until it is read", pressed},
}

func gapTold(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 2)
	last := s.mailed(b, 0, 2, "")
	b.Drop()
	s.mail(a, "agent-2", 2, 40)
	b = s.agent(0, "agent-2", "last_seq", fmt.Sprint(last.Seq()))
	g := b.ExpectText(`{"type":"gap","from_seq":"<any>","to_seq":"<any>"}`)
	f := s.mailed(b, 24, 25, "")
	if g.Uint("from_seq") <= last.Seq() || g.Uint("to_seq") >= f.Seq() || g.Uint("from_seq") > g.Uint("to_seq") {
		s.Errorf("gap %s after %d and before %d", g, last.Seq(), f.Seq())
	}
	s.mailed(b, 25, 40, "")
	b.Drop()
	b = s.agent(1, "agent-2", "last_seq", g.Raw("to_seq")) // a gap counts as handled
	s.mailed(b, 24, 40, "")
	b.Barrier()
}

func pressed(s *scene) {
	a, b := s.pair()
	b.Drop()
	sent := 0
	var refused Frame
	for ; refused == "" && sent < 400; sent++ {
		a.Send(fmt.Sprintf(`{"type":"send","id":"m-%d","to":"agent-2","payload":%d}`, sent, sent))
		if f := a.Take("an answer"); f.Type() == "error" {
			refused = f
			sent--
		}
	}
	if d := refused.Match(`{"type":"error","code":"RATE_LIMITED","to":"agent-2","retry_after_ms":"<any>"}`); d != "" {
		s.Fatalf("after %d messages: %s: %s", sent, refused, d)
	}
	if sent < 12 {
		s.Errorf("refused after %d messages, want three quarters of 16 at least", sent)
	}
	c := s.agent(0, "agent-3")
	a.Send(`{"type":"send","to":"agent-3","payload":0}`) // nobody else suffers
	s.mailed(c, 0, 1, "")
	b = s.agent(1, "agent-2")
	a.Until("there is room", func() bool {
		<-time.After(100 * time.Millisecond) // errors are counted
		a.Send(`{"type":"send","id":"again","to":"agent-2","payload":"again"}`)
		return a.Take("an answer").Type() == "receipt"
	})
	b.Await(`{"type":"message","payload":"again"}`)
}

// briefScenes need records that live for a second, and a short time-out.
var briefScenes = []scenario{
	{"an agent that slept long with nothing sent to it sees no gap", quietSleeper},
	{"nor does one that had all its mail long before", restedSleeper},
	{"an agent that slept long with something sent to it sees a gap", sleeper},
	{"a connection without a sign of life is closed", silent},
	{"an agent is unknown again some time after its session", forgotten},
	{"an agent of the short dialect gets pings and no heartbeats", shortDialect},
}

// expire waits until everything that is stored now has expired.
func (s *scene) expire() {
	s.Helper()
	done := time.After(s.opts.Node.MaxAge + s.opts.Node.MaxAge/2)
	<-done
}

// slept has agent-2, which is b, away until everything has expired, and proves
// that it sees no gap, whether it says where it stands or not.
func (s *scene) slept(a, b *Client, last uint64) {
	s.Helper()
	b.Drop()
	s.expire()
	c := s.agent(1, "agent-3")
	s.mail(a, "agent-3", 7, 8) // others get mail meanwhile
	s.mailed(c, 7, 8, "")
	b = s.agent(0, "agent-2")
	b.Barrier()
	b.Drop()
	b = s.agent(1, "agent-2", "last_seq", fmt.Sprint(last))
	s.mail(a, "agent-2", 8, 9)
	s.mailed(b, 8, 9, "")
}

func quietSleeper(s *scene) {
	a := s.agent(0, "agent-1")
	b, w := s.enter(1, "agent-2")
	s.slept(a, b, w.Uint("last_seq"))
}

func restedSleeper(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 2)
	last := s.mailed(b, 0, 2, "")
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, last.Seq()))
	b.Barrier()
	s.expire()
	s.slept(a, b, last.Seq())
}

func sleeper(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 1)
	last := s.mailed(b, 0, 1, "")
	b.Drop()
	s.mail(a, "agent-2", 1, 3)
	s.expire()
	b = s.agent(0, "agent-2", "last_seq", fmt.Sprint(last.Seq()))
	b.Expect(`{"type":"gap"}`)
	s.mail(a, "agent-2", 3, 4)
	s.mailed(b, 3, 4, "")
}

func silent(s *scene) {
	a, b := s.pair()
	c := s.open(0)
	c.Deafen()
	a.Deafen()
	begin := time.Now()
	a.AwaitClosed(1001)
	if took := time.Since(begin); took < 900*time.Millisecond {
		s.Errorf("closed after %v, want a second", took)
	}
	c.AwaitClosed(1001) // also who has not said who it is
	b.Barrier()
	if b.Heartbeats() == 0 || b.Pings() == 0 {
		s.Errorf("%d heartbeats and %d pings came", b.Heartbeats(), b.Pings())
	}
}

func forgotten(s *scene) {
	a, b := s.pair()
	b.Close(1000)
	s.away(a, "agent-2")
	a.Until("agent-2 is forgotten", func() bool {
		a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0}`)
		f := a.Take("an answer")
		return f.Text("code") == "AGENT_NOT_FOUND"
	})
}

func shortDialect(s *scene) {
	a := s.open(0)
	a.Send(`{"type":"register","id":"agent-1"}`)
	a.Expect(`{"type":"registered"}`)
	pings := a.Pings()
	a.Until("pings come", func() bool { return a.Pings() > pings+3 })
	if a.Heartbeats() != 0 {
		s.Errorf("%d heartbeats came", a.Heartbeats())
	}
	a.Barrier()
}
