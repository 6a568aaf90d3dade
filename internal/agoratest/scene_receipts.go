package agoratest

import "fmt"

// receiptScenes are what a sender learns of its frames, by id.
var receiptScenes = []scenario{
	{"an id asks for a receipt, with the position of what is stored", receipted},
	{"nothing is receipted unasked", unasked},
	{"a frame sent again is stored once and receipted as the first time", sentAgain},
	{"a frame sent again at another edge is stored once", sentAgainElsewhere},
	{"another message under an old id is another message", sameID},
	{"a receipt names a frame by its number, else its id, else its index", receiptNames},
	{"a publish is receipted by its number, or its id on request", publishNames},
	{"delivered and acked are told on request, also across edges", tiers},
	{"the connection may ask for every frame", tiersByURL},
	{"agent.register may ask for every frame", tiersByRegister},
	{"receipts wait for a sender that is away", lateReceipts},
	{"a receipt by number is told to the session whose number it is, and to no later one", oldNumbers},
	{"a receipt by number is told to the process whose number it is, and to none that takes its place", replacedNumbers},
	{"a publish is receipted too, and sent again is one event", publishedAgain},
}

func receipted(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"m-1","to":"agent-2","payload":1}`)
	r := a.ExpectText(`{"type":"receipt","request_id":"m-1","status":"stored","seq":"<any>"}`)
	if f := b.Expect(`{"type":"message","payload":1}`); f.Seq() != r.Seq() || f.Seq() == 0 || f.Seq() >= 1<<53 {
		s.Errorf("receipt says seq %d, the message %d", r.Seq(), f.Seq())
	}
	a.Send(`{"type":"send","id":"m-2","to":"agent-2","stream_id":"s","stream":true}`,
		`{"type":"send_chunk","id":"m-3","to":"agent-2","stream_id":"s","chunk":"x"}`,
		`{"type":"send_end","id":"m-4","to":"agent-2","stream_id":"s"}`,
		`{"type":"reply","id":"m-5","to":"agent-2","payload":1}`)
	for i := range 4 {
		a.Expect(fmt.Sprintf(`{"type":"receipt","request_id":"m-%d","status":"stored"}`, i+2))
	}
}

func unasked(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","to":"agent-2","payload":1}`)
	b.Expect(`{"type":"message"}`)
	b.Send(`{"type":"reply","to":"agent-1","payload":2}`)
	a.Expect(`{"type":"reply"}`)
	a.Barrier()
	b.Barrier()
}

func sentAgain(s *scene) {
	a, b := s.pair()
	frame := `{"type":"send","id":"m-1","to":"agent-2","payload":{"k":1}}`
	a.Send(frame)
	first := a.Expect(`{"type":"receipt","request_id":"m-1"}`)
	a.Send(frame, frame)
	for range 2 {
		if r := a.Expect(`{"type":"receipt","request_id":"m-1","status":"stored"}`); r.Seq() != first.Seq() {
			s.Errorf("receipt says seq %d, the first one %d", r.Seq(), first.Seq())
		}
	}
	a.Send(`{"type":"send","to":"agent-2","payload":"marker"}`)
	b.Expect(`{"type":"message","payload":{"k":1}}`, `{"type":"message","payload":"marker"}`)
}

func sentAgainElsewhere(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 3)
	a.Drop()
	a = s.agent(2, "agent-1")
	s.mail(a, "agent-2", 0, 6)
	s.mailed(b, 0, 6, `,"redelivered":"<none>"`)
	b.Barrier()
}

func sameID(s *scene) {
	a, b := s.pair()
	c := s.agent(2, "agent-3")
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":1}`, `{"type":"send","id":"m","to":"agent-2","payload":2}`)
	b.Expect(`{"type":"message","payload":1}`, `{"type":"message","payload":2}`)
	a.Send(`{"type":"send","id":"m","to":"agent-3","payload":1}`)
	c.Expect(`{"type":"message","payload":1}`)
	a.Expect(`{"type":"receipt"}`, `{"type":"receipt"}`, `{"type":"receipt"}`)
	a.Barrier()
}

func receiptNames(s *scene) {
	a, _ := s.pair()
	for _, c := range [][2]string{
		{`{"type":"send","to":"agent-2","id":"m-1","n":1,"payload":1}`, `"request_id":"<none>","to":"agent-2","n":1`},
		{`{"type":"send","to":"agent-2","id":"m-2","stream_id":"s","stream":true,"index":0,"receipts":["stored"]}`, `"request_id":"m-2","to":"<none>","stream_id":"<none>","index":"<none>"`},
		{`{"type":"send_chunk","to":"agent-2","stream_id":"s","chunk":"x","index":1}`, `"request_id":"<none>","stream_id":"s","index":1`},
		{`{"type":"cancel","to":"agent-2","stream_id":"s","id":"m-3"}`, `"request_id":"m-3","stream_id":"<none>"`},
	} {
		a.Send(c[0])
		a.Expect(`{"type":"receipt",` + c[1] + `,"status":"stored"}`)
	}
	a.Send(`{"type":"send","to":"agent-2","payload":1,"receipts":["stored","delivered","acked"]}`) // has no name
	a.Barrier()
}

func publishNames(s *scene) {
	a := s.agent(0, "agent-1")
	s.members("general", a)
	publish := func(fields string) string {
		return `{"type":"space.publish","space":"general","data":{"text":"x"},` + fields + `}`
	}
	a.Send(publish(`"id":"p-1"`))
	a.Expect(`{"type":"space.event"}`)
	a.Barrier()
	a.Send(publish(`"id":"p-2","receipts":["stored","delivered","acked"]`))
	a.ExpectAll(`{"type":"receipt","request_id":"p-2","space":"<none>","status":"stored"}`, `{"type":"space.event"}`)
	a.Send(publish(`"id":"p-3","n":1`))
	a.ExpectAll(`{"type":"receipt","request_id":"<none>","space":"general","n":1,"status":"stored"}`, `{"type":"space.event"}`)
	a.Send(publish(`"id":"p-4","stream":true`))
	a.ExpectAll(`{"type":"space.published","id":"p-4"}`, `{"type":"space.event.delta"}`)
	a.Send(`{"type":"space.publish.delta","id":"d-1","space":"general","event_id":"p-4","data":{"text":"y"}}`,
		`{"type":"space.publish.done","id":"d-2","space":"general","event_id":"p-4"}`)
	a.Expect(`{"type":"space.event.delta"}`, `{"type":"space.event.done"}`)
	a.Barrier()
}

func tiers(s *scene) {
	a, b := s.pair()
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0,"receipts":["stored","delivered","acked"]}`)
	a.ExpectAll(
		`{"type":"receipt","request_id":"m","status":"stored"}`,
		`{"type":"receipt","request_id":"m","status":"delivered"}`,
		`{"type":"receipt","request_id":"m","status":"acked"}`)
	b.Deafen()
	a.Send(`{"type":"send","id":"n","to":"agent-2","payload":1,"receipts":["delivered","acked"]}`)
	a.ExpectAll(`{"type":"receipt","request_id":"n","status":"stored"}`, `{"type":"receipt","request_id":"n","status":"delivered"}`)
	f := s.mailed(b, 0, 2, "")
	a.Barrier() // nothing is known to have arrived
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()))
	a.Expect(`{"type":"receipt","request_id":"n","status":"acked"}`)
}

func tiersByURL(s *scene) {
	a := s.agent(0, "agent-1", "receipts", "stored,delivered")
	s.agent(1, "agent-2")
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0}`)
	a.ExpectAll(`{"type":"receipt","request_id":"m","status":"stored"}`, `{"type":"receipt","request_id":"m","status":"delivered"}`)
	a.Barrier()
}

func tiersByRegister(s *scene) {
	a := s.open(0)
	a.Send(`{"type":"agent.register","agent":{"id":"agent-1"},"receipts":["delivered"]}`)
	a.Expect(`{"type":"agent.registered"}`)
	s.agent(1, "agent-2")
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0}`)
	a.ExpectAll(`{"type":"receipt","request_id":"m","status":"stored"}`, `{"type":"receipt","request_id":"m","status":"delivered"}`)
}

func lateReceipts(s *scene) {
	a, b := s.pair()
	b.Drop()
	a.Send(`{"type":"send","id":"m","to":"agent-2","payload":0,"receipts":["delivered"]}`)
	a.Expect(`{"type":"receipt","request_id":"m","status":"stored"}`)
	a.Drop()
	b = s.agent(2, "agent-2")
	s.mailed(b, 0, 1, "")
	a = s.agent(1, "agent-1")
	a.Expect(`{"type":"receipt","request_id":"m","status":"delivered"}`)
}

func oldNumbers(s *scene) {
	a, b := s.pair()
	b.Deafen()
	a.Send(`{"type":"send","to":"agent-2","n":1,"payload":0,"receipts":["acked"]}`)
	a.Expect(`{"type":"receipt","n":1,"status":"stored"}`)
	f := s.mailed(b, 0, 1, "")
	a.Close(1000)
	a = s.agent(2, "agent-1", "resume_token", "")
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()), `{"type":"send","to":"agent-1","payload":"after it"}`)
	a.Expect(`{"type":"message","payload":"after it"}`)
}

func replacedNumbers(s *scene) {
	a, b := s.pair()
	b.Deafen()
	a.Send(`{"type":"send","to":"agent-2","n":1,"payload":0,"receipts":["acked"]}`)
	a.Expect(`{"type":"receipt","n":1,"status":"stored"}`)
	f := s.mailed(b, 0, 1, "")
	a.Drop()
	a = s.agent(2, "agent-1", "resume_token", "")
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()), `{"type":"send","to":"agent-1","payload":"after it"}`)
	a.Expect(`{"type":"message","payload":"after it"}`)
}

func publishedAgain(s *scene) {
	a, b := s.pair()
	s.members("general", a, b)
	frame := `{"type":"space.publish","id":"p","space":"general","data":{"text":"x"},"receipts":["stored"]}`
	a.Send(frame, frame)
	got := a.ExpectAll(`{"type":"receipt","request_id":"p"}`, `{"type":"receipt","request_id":"p"}`, `{"type":"space.event"}`)
	if got[0].Seq() != got[1].Seq() || got[0].Seq() != got[2].Seq() {
		s.Errorf("receipts for %d and %d of the event %d", got[0].Seq(), got[1].Seq(), got[2].Seq())
	}
	a.Send(`{"type":"space.publish","space":"general","data":{"text":"y"}}`)
	b.Expect(`{"type":"space.event","data":{"from":"agent-1","text":"x","timestamp":"<any>"}}`,
		`{"type":"space.event","data":{"from":"agent-1","text":"y","timestamp":"<any>"}}`)
}
