package agoratest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// eventScenes are what is published into spaces.
var eventScenes = []scenario{
	{"an event reaches every member, its publisher included", published},
	{"from is overwritten and a missing timestamp filled", signed},
	{"all members see the events of many publishers in one order", oneOrder},
	{"a large text goes out as deltas and done", largeText},
	{"large data without a text is one event", largeData},
	{"an event may be streamed, and is seen as it comes", streamedEvent},
	{"the id of the publish stands for the event until that is known", eventAlias},
	{"the publisher cancels: nothing more for anybody", cancelledByPublisher},
	{"a member cancels: nothing more for that member", cancelledByMember},
	{"parts of an event that nobody began are STREAM_NOT_FOUND", unknownEvent},
	{"a publisher that says goodbye mid-event cancels it", publisherGone},
	{"a streamed event goes on at another edge", eventElsewhere},
	{"a member that is away gets the events on its return", memberAway},
}

func published(s *scene) {
	a, b, c := s.agent(0, "agent-001"), s.agent(1, "agent-002"), s.agent(2, "agent-003")
	s.members("general", a, b, c)
	a.Send(`{
  "type": "space.publish",
  "id": "msg_004",
  "space": "general",
  "data": {
    "from": "agent-001",
    "text": "Hello everyone",
    "timestamp": 1234567890
  }
}`)
	for _, m := range []*Client{a, b, c} {
		m.ExpectText(`{
  "type": "space.event",
  "space": "general",
  "data": {
    "from": "agent-001",
    "text": "Hello everyone",
    "timestamp": 1234567890
  }
}`)
	}
	b.Send(`{"type":"space.publish","space":"general","data":{"from":"agent-002","text":"Hi there!","timestamp":1234567891}}`)
	for _, m := range []*Client{a, b, c} {
		m.ExpectText(`{"type":"space.event","space":"general","data":{"from":"agent-002","text":"Hi there!","timestamp":1234567891}}`)
		m.Barrier()
	}
}

func signed(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	a.Send(`{"type":"space.publish","space":"general","data":{"from":"agent-2","text":"x"}}`)
	b.ExpectText(`{"type":"space.event","space":"general","data":{"from":"agent-1","text":"x","timestamp":"<any>"}}`)
	a.Send(`{"type":"space.publish","space":"general","data":{}}`)
	f := b.ExpectText(`{"type":"space.event","space":"general","data":{"from":"agent-1","timestamp":"<any>"}}`)
	if at := Frame(f.Raw("data")).Uint("timestamp"); at < 1_600_000_000 || at > 10_000_000_000 {
		s.Errorf("timestamp %d is not in Unix seconds", at)
	}
}

func oneOrder(s *scene) {
	var all []*Client
	for i := range 4 {
		all = append(all, s.agent(i%3, fmt.Sprintf("agent-%d", i)))
	}
	s.members("general", all...)
	const each = 15
	for i := range each {
		for _, c := range all {
			c.Send(fmt.Sprintf(`{"type":"space.publish","space":"general","data":{"timestamp":%d}}`, i))
		}
	}
	var first []string
	for k, c := range all {
		var order []string
		for range each * len(all) {
			f := c.Expect(`{"type":"space.event"}`)
			order = append(order, f.Raw("seq")+f.Raw("data"))
		}
		if k == 0 {
			first = order
		}
		if !slices.Equal(order, first) {
			s.Errorf("agent-%d saw another order than agent-0:\n%q\n%q", k, order, first)
		}
	}
}

// gather takes the deltas of an event and returns its id and text; the first frame has been taken.
func (s *scene) gather(c *Client, first Frame) (event, text string) {
	s.Helper()
	event = first.Text("event_id")
	for f := first; ; f = c.Take("a delta") {
		switch {
		case f.Text("event_id") != event || !strings.HasPrefix(event, "evt_"):
			s.Fatalf("got %.200s in the event %q", f, event)
		case f.Type() == "space.event.done":
			return event, text
		}
		piece := Frame(f.Raw("data")).Text("text")
		if f.Type() != "space.event.delta" || piece == "" {
			s.Fatalf("got %.200s, want a delta that is not empty", f)
		}
		text += piece
	}
}

func largeText(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	text := strings.Repeat(`😀 \ "x" é`+"\n", 4000)
	raw, _ := json.Marshal(text)
	a.Send(`{"type":"space.publish","space":"general","data":{"from":"agent-9","topic":"t","text":` + string(raw) + `,"timestamp":7}}`)
	for _, m := range []*Client{a, b} {
		first := m.ExpectText(`{"type":"space.event.delta","space":"general","event_id":"<any>","data":{"from":"agent-1","topic":"t","text":"<any>","timestamp":7}}`)
		if _, got := s.gather(m, first); got != text {
			s.Errorf("got a text of %d bytes, want %d", len(got), len(text))
		}
		m.Barrier() // and no plain event besides
	}
}

func largeData(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	big := strings.Repeat("x", 60_000)
	for _, data := range []string{`{"blob":"` + big + `","timestamp":1}`, `{"text":["` + big + `"],"timestamp":1}`, `{"blob":"` + big + `","text":"short","timestamp":1}`} {
		a.Send(`{"type":"space.publish","space":"general","data":` + data + `}`)
		if f := b.Expect(`{"type":"space.event"}`); len(f.Raw("data")) < len(big) {
			s.Errorf("got %d bytes of data", len(f.Raw("data")))
		}
	}
}

// begin has c begin a streamed event, and returns its id; others get its first delta.
func (s *scene) begin(c *Client, others ...*Client) (event string) {
	s.Helper()
	c.Send(`{"type":"space.publish","id":"p","space":"general","data":{"topic":"t","text":"Hel","timestamp":1},"stream":true}`)
	const delta = `{"type":"space.event.delta","space":"general","event_id":"<any>","data":{"from":"agent-1","topic":"t","text":"Hel","timestamp":1}}`
	got := c.ExpectAll(`{"type":"space.published","id":"p","space":"general","event_id":"<any>"}`, delta)
	event = got[0].Text("event_id")
	if !strings.HasPrefix(event, "evt_") || got[1].Text("event_id") != event {
		s.Errorf("event ids %q and %q", event, got[1].Text("event_id"))
	}
	for _, o := range others {
		o.Expect(delta)
	}
	return event
}

func streamedEvent(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	event := s.begin(a, b)
	for _, text := range []string{"lo", " ", "world"} {
		a.Send(`{"type":"space.publish.delta","space":"general","event_id":"` + event + `","data":{"text":"` + text + `"}}`)
		for _, m := range []*Client{a, b} {
			m.ExpectText(`{"type":"space.event.delta","space":"general","event_id":"` + event + `","data":{"text":"` + text + `"}}`)
		}
	}
	a.Send(`{"type":"space.publish.done","space":"general","event_id":"` + event + `"}`)
	for _, m := range []*Client{a, b} {
		m.ExpectText(`{"type":"space.event.done","space":"general","event_id":"` + event + `"}`)
		m.Barrier()
	}
}

func eventAlias(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	a.Send(
		`{"type":"space.publish","id":"p","space":"general","data":{"text":"Hello "},"stream":true}`,
		`{"type":"space.publish.delta","space":"general","event_id":"p","data":{"text":"world!"}}`,
		`{"type":"space.publish.done","space":"general","event_id":"p"}`)
	event, text := s.gather(b, b.Expect(`{"type":"space.event.delta"}`))
	if text != "Hello world!" {
		s.Errorf("got %q", text)
	}
	a.Await(`{"type":"space.published","id":"p","event_id":"` + event + `"}`)
}

func cancelledByPublisher(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	event := s.begin(a, b)
	a.Send(`{"type":"space.event.cancel","event_id":"` + event + `"}`)
	for _, m := range []*Client{a, b} {
		m.ExpectText(`{"type":"space.event.cancel","space":"general","event_id":"` + event + `"}`)
	}
	a.Send(`{"type":"space.publish.delta","space":"general","event_id":"` + event + `","data":{"text":"late"}}`)
	s.talk(a, 5, 6)
	s.heard(b, 5, 6, "")
}

func cancelledByMember(s *scene) {
	a, b := s.pair()
	c := s.agent(2, "agent-3")
	s.members("general", a, b, c)
	event := s.begin(a, b, c)
	b.Send(`{"type":"space.event.cancel","space":"general","event_id":"` + event + `"}`)
	b.Barrier()
	a.Send(`{"type":"space.publish.delta","space":"general","event_id":"`+event+`","data":{"text":"lo"}}`,
		`{"type":"space.publish.done","space":"general","event_id":"`+event+`"}`)
	for _, m := range []*Client{a, c} {
		m.Expect(`{"type":"space.event.delta","data":{"text":"lo"}}`, `{"type":"space.event.done"}`)
	}
	s.talk(a, 5, 6)
	s.heard(b, 5, 6, "")
}

func unknownEvent(s *scene) {
	a := s.agent(0, "agent-1")
	s.members("general", a)
	a.Send(`{"type":"space.publish.delta","id":"d","space":"general","event_id":"evt_nothing","data":{"text":"x"}}`)
	a.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","request_id":"d"}`)
	a.Send(`{"type":"space.publish.done","id":"d","space":"general","event_id":"evt_other"}`)
	a.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","request_id":"d"}`)
	a.Send(`{"type":"space.event.cancel","id":"d","event_id":"evt_nothing"}`)
	a.Expect(`{"type":"error","code":"STREAM_NOT_FOUND","request_id":"d"}`)
	a.Send(`{"type":"space.publish.delta","id":"d","space":"general","event_id":"evt_x","data":{"text":7}}`)
	a.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"d"}`)
}

func publisherGone(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	event := s.begin(a, b)
	a.Close(1000)
	b.ExpectText(`{"type":"space.event.cancel","space":"general","event_id":"` + event + `"}`)
	b.Expect(`{"type":"space.members","left":"agent-1"}`)
	b.Barrier()
}

func eventElsewhere(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	event := s.begin(a, b)
	a.Drop()
	a = s.agent(2, "agent-1")
	a.Send(`{"type":"space.publish.delta","space":"general","event_id":"`+event+`","data":{"text":"lo"}}`,
		`{"type":"space.publish.done","space":"general","event_id":"`+event+`"}`)
	b.Expect(`{"type":"space.event.delta","event_id":"`+event+`","data":{"text":"lo"}}`, `{"type":"space.event.done","event_id":"`+event+`"}`)
}

func memberAway(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	s.talk(a, 0, 2)
	last := s.heard(b, 0, 2, "")
	b.Send(fmt.Sprintf(`{"type":"ack","space":"general","seq":%d}`, last.Seq()))
	b.Barrier()
	b.Drop()
	s.talk(a, 2, 6)
	b = s.agent(2, "agent-2")
	s.heard(b, 2, 6, "")
	s.talk(a, 6, 8)
	s.heard(b, 6, 8, `,"redelivered":"<none>"`)
	b.Barrier()
}
