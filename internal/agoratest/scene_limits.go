package agoratest

import (
	"fmt"
	"strings"
	"time"
)

// strictScenes need other rules: no mailbox, no spaces of their own accord, two
// members at most, and small frames.
var strictScenes = []scenario{
	{"without mailboxes an agent that is away is AGENT_OFFLINE", offline},
	{"without auto-create a join needs a space.create", noAutoCreate},
	{"a space takes no more members than it may, across edges", spaceFull},
	{"a frame beyond all bounds closes the connection", farTooLarge},
}

// ratedScenes need a rate of four frames a second.
var ratedScenes = []scenario{
	{"over the rate one-shots are refused and chunks slowed", rated},
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
	const parts = 7
	for i := range parts {
		a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"%d"}`, i))
	}
	b.Expect(`{"type":"message"}`)
	for i := range parts {
		b.Expect(fmt.Sprintf(`{"type":"message_chunk","chunk":"%d"}`, i))
	}
	if took := time.Since(begin); took < 800*time.Millisecond {
		s.Errorf("%d chunks at 4 a second took %v", parts, took)
	}
	var f Frame
	a.Until("a one-shot is refused", func() bool { // a busy machine may send slower than it may
		const burst, rate = 20, 4
		begin := time.Now()
		for i := range burst {
			a.Send(fmt.Sprintf(`{"type":"send","id":"m","to":"agent-2","payload":%d}`, i))
		}
		for range burst {
			if answer := a.Take("an answer"); answer.Type() == "error" {
				f = answer
			}
		}
		if took := time.Since(begin); f == "" && took < (burst-rate)*time.Second/rate {
			s.Fatalf("%d one-shots within %v were all taken, of %d a second", burst, took, rate)
		}
		return f != ""
	})
	if d := f.Match(`{"type":"error","code":"RATE_LIMITED","request_id":"m","to":"agent-2","retry_after_ms":"<any>"}`); d != "" {
		s.Errorf("%s: %s", f, d)
	}
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
	{"numbers behind one that a nearly full mailbox has refused wait for it, and streams go on", pressedNumbers},
	{"a number that a nearly full mailbox has refused is passed over where its sender goes on", pressedNumberPassed},
	{"a stream lacks a part where its number comes with something else", pressedPartLost},
}

// full has c fill the mailbox of agent-2, who is away, by numbers from n on, and returns the first one that is refused.
func (s *scene) full(c *Client, n int) int {
	s.Helper()
	for ; n < 400; n++ {
		s.numbers(c, n, n+1)
		if f := c.Take("an answer"); f.Type() == "error" {
			if d := f.Match(fmt.Sprintf(`{"type":"error","code":"RATE_LIMITED","to":"agent-2","n":%d,"retry_after_ms":"<any>"}`, n)); d != "" {
				s.Fatalf("%s: %s", f, d)
			}
			return n
		}
	}
	s.Fatalf("the mailbox is never full")
	return 0
}

// held has a stream of a be open to b, who leaves then, and fills b's mailbox: number n is refused, and so are the
// chunk and the message behind it.
func (s *scene) held() (a *Client, n int) {
	s.Helper()
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","n":1,"stream_id":"s","stream":true}`)
	a.Await(`{"type":"receipt","n":1}`)
	b.Await(`{"type":"message","stream_id":"s"}`)
	b.Drop()
	n = s.full(a, 2)
	a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","n":%d,"stream_id":"s","chunk":"c"}`, n+1))
	a.Expect(fmt.Sprintf(`{"type":"error","code":"UNAVAILABLE","n":%d,"stream_id":"s","retry_after_ms":"<any>"}`, n+1))
	s.numbers(a, n+2, n+3)
	a.Expect(fmt.Sprintf(`{"type":"error","code":"UNAVAILABLE","n":%d}`, n+2))
	return a, n
}

func pressedNumbers(s *scene) {
	a, n := s.held()
	b := s.agent(1, "agent-2")
	a.Until("there is room", func() bool {
		<-time.After(100 * time.Millisecond) // errors are counted
		s.numbers(a, n, n+1)
		return a.Take("an answer").Type() == "receipt"
	})
	a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","n":%d,"stream_id":"s","chunk":"c"}`, n+1))
	a.Send(fmt.Sprintf(`{"type":"send_end","to":"agent-2","n":%d,"stream_id":"s"}`, n+2))
	s.awaitNumber(a, "stored", uint64(n+2))
	b.Await(fmt.Sprintf(`{"type":"message","payload":%d}`, n))
	b.Expect(`{"type":"message_chunk","stream_id":"s","chunk":"c"}`)
	b.Expect(`{"type":"message_end","stream_id":"s"}`)
	b.Barrier()
}

func pressedNumberPassed(s *scene) {
	a, b := s.pair()
	b.Drop()
	n := s.full(a, 1)
	start := fmt.Sprintf(`{"type":"send","to":"agent-2","n":%d,"stream_id":"s","stream":true}`, n+1) // which no full mailbox refuses
	a.Send(start)
	a.Expect(fmt.Sprintf(`{"type":"error","code":"UNAVAILABLE","n":%d}`, n+1))
	a.Send(start)
	a.Expect(fmt.Sprintf(`{"type":"receipt","n":%d,"status":"stored"}`, n+1))
	a.Send(fmt.Sprintf(`{"type":"send","to":"agent-2","n":%d,"stream_id":"t","stream":true}`, n))
	a.Expect(fmt.Sprintf(`{"type":"error","code":"INVALID_REQUEST","n":%d}`, n))
	b = s.agent(1, "agent-2")
	b.Await(`{"type":"message","stream_id":"s"}`)
	b.Barrier()
}

func pressedPartLost(s *scene) {
	a, n := s.held()
	for i, name := range []string{"t", "u"} { // in place of the message, and of the chunk of s
		a.Send(fmt.Sprintf(`{"type":"send","to":"agent-2","n":%d,"stream_id":%q,"stream":true}`, n+i, name))
		a.Expect(fmt.Sprintf(`{"type":"receipt","n":%d,"status":"stored"}`, n+i))
	}
	b := s.agent(1, "agent-2")
	b.Await(`{"type":"error","code":"STREAM_ABORTED","from":"agent-1","stream_id":"s"}`)
	b.Await(`{"type":"message","stream_id":"u"}`)
	b.Barrier()
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
