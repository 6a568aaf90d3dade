package agoratest

import (
	"fmt"
	"strings"
	"sync"
)

// flowScenes are senders and receivers that do not keep step.
var flowScenes = []scenario{
	{"a receiver that reads nothing disturbs nobody, and gets everything later", slowReceiver},
	{"a sender that is faster than the log is not read any further", fastSender},
	{"a member that reads nothing disturbs no other member", slowMember},
}

func slowReceiver(s *scene) {
	a, b := s.pair()
	c, d := s.agent(2, "agent-3"), s.agent(1, "agent-4") // agent-4 is at the edge of the slow one
	b.Pause()
	const parts = 500
	var sending sync.WaitGroup
	sending.Go(func() {
		a.Send(startIndexed)
		for i := 1; i <= parts; i++ {
			a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","index":%d,"chunk":"%s"}`, i, strings.Repeat("x", 2000)))
		}
	})
	for i := range 50 {
		c.Send(fmt.Sprintf(`{"type":"send","to":"agent-4","payload":%d}`, i))
		s.mailed(d, i, i+1, "")
	}
	sending.Wait()
	b.Resume()
	b.Expect(`{"type":"message","stream_id":"s"}`)
	for i := 1; i <= parts; i++ {
		b.Expect(fmt.Sprintf(`{"type":"message_chunk","stream_id":"s","index":%d,"redelivered":"<none>"}`, i))
	}
	a.Barrier()
}

func fastSender(s *scene) {
	k := s.AddEdge()
	a, b := s.agent(k, "agent-1"), s.agent(1, "agent-2")
	a.Send(startIndexed)
	b.Expect(`{"type":"message"}`)
	s.HoldLog(k, true)
	before := s.Door(k).Stats().BytesIn.Load()
	const parts, size = 30, 100_000
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := 1; i <= parts; i++ {
			a.Send(fmt.Sprintf(`{"type":"send_chunk","to":"agent-2","stream_id":"s","index":%d,"chunk":"%s"}`, i, strings.Repeat("x", size)))
		}
	})
	last, still := int64(0), 0
	a.Until("the edge stops reading", func() bool {
		now := s.Door(k).Stats().BytesIn.Load() - before
		if still++; now != last {
			last, still = now, 0
		}
		return still > 20 && now > 0
	})
	if last > 2<<20 {
		s.Errorf("the edge took %d bytes that it could not store", last)
	}
	s.HoldLog(k, false)
	for i := 1; i <= parts; i++ {
		b.Expect(fmt.Sprintf(`{"type":"message_chunk","index":%d}`, i))
	}
	sending.Wait()
}

func slowMember(s *scene) {
	a, b := s.pair()
	c := s.agent(1, "agent-3")
	s.members("general", a, b, c)
	b.Pause()
	const rounds, each = 10, 15
	text := strings.Repeat("x", 8000)
	for i := range rounds * each {
		a.Send(fmt.Sprintf(`{"type":"space.publish","space":"general","data":{"i":%d,"text":"%s"}}`, i, text))
		if i%each < each-1 {
			continue
		}
		for range each {
			a.Expect(`{"type":"space.event"}`)
			c.Expect(`{"type":"space.event"}`)
		}
	}
	b.Resume()
	for i := range rounds * each {
		f := b.Await(`{"type":"space.event"}`)
		if !strings.Contains(f.Raw("data"), fmt.Sprintf(`"i":%d,`, i)) {
			s.Fatalf("event %d is %.200s", i, f)
		}
	}
}
