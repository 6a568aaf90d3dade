package agoratest

import (
	"fmt"
	"strconv"
)

// resumeScenes are a receiver that comes back.
var resumeScenes = []scenario{
	{"last_seq resumes at another edge mid-stream, with nothing missing and nothing twice", resumed},
	{"last_seq of register resumes too", resumedByFrame},
	{"last_seq 0 replays everything that is kept", replayed},
	{"a receiver that changes edges all the time misses nothing", restless},
	{"an edge that drains sends its agents on, and nothing is lost", drained},
	{"a position beyond the log's end is a gap and goes on", beyondEnd},
}

func resumed(s *scene) {
	a, b := s.pair()
	a.Send(startIndexed)
	const parts = 60
	last := b.Expect(`{"type":"message","stream_id":"s"}`).Seq()
	for i := 1; i <= parts; i++ {
		s.indexed(a, i)
		if i%20 != 0 {
			continue
		}
		for j := i - 19; j <= i-10; j++ {
			f := b.Expect(fmt.Sprintf(`{"type":"message_chunk","index":%d,"redelivered":"<none>"}`, j))
			last = f.Seq()
		}
		b.Drop()
		b = s.agent(i/20%3, "agent-2", "last_seq", strconv.FormatUint(last, 10))
		for j := i - 9; j <= i; j++ {
			f := b.Expect(fmt.Sprintf(`{"type":"message_chunk","index":%d,"redelivered":"<none>"}`, j))
			last = f.Seq()
		}
	}
	a.Send(fmt.Sprintf(`{"type":"send_end","to":"agent-2","stream_id":"s","index":%d}`, parts+1))
	b.Expect(`{"type":"message_end","stream_id":"s"}`)
	b.Barrier()
}

func resumedByFrame(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 4)
	last := s.mailed(b, 0, 2, "").Seq()
	b.Drop()
	for _, f := range []string{
		`{"type":"register","id":"agent-2","last_seq":%d}`,
		`{"type":"agent.register","agent":{"id":"agent-2"},"last_seq":%d}`,
	} {
		c := s.open(2)
		c.Send(fmt.Sprintf(f, last))
		if w := c.Take("a welcome"); w.Uint("last_seq") != last {
			s.Errorf("welcome %s, want last_seq %d", w, last)
		}
		s.mailed(c, 2, 4, "")
		c.Barrier()
		c.Drop()
	}
}

func replayed(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 5)
	f := s.mailed(b, 0, 5, "")
	b.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, f.Seq()))
	b.Barrier()
	b.Drop()
	b = s.agent(2, "agent-2", "last_seq", "0")
	s.mailed(b, 0, 5, "")
	b.Barrier()
}

func restless(s *scene) {
	a, b := s.pair()
	const rounds, each = 6, 5
	last := uint64(0)
	for r := range rounds {
		for i := range each {
			a.Send(fmt.Sprintf(`{"type":"send","to":"agent-2","payload":%d}`, r*each+i))
		}
		if r > 0 {
			b.Drop()
			b = s.agent(r%3, "agent-2", "last_seq", strconv.FormatUint(last, 10))
		}
		last = s.mailed(b, r*each, (r+1)*each, "").Seq()
	}
	b.Barrier()
}

func drained(s *scene) {
	k := s.AddEdge()
	a, b := s.agent(k, "agent-1"), s.agent(k, "agent-2")
	c := s.agent(0, "agent-3")
	s.members("general", a, c)
	a.Send(`{"type":"send","to":"agent-3","stream_id":"s","stream":true}`, `{"type":"send_chunk","to":"agent-3","stream_id":"s","chunk":"1"}`)
	c.Expect(`{"type":"message"}`, `{"type":"message_chunk","chunk":"1"}`)
	s.StopEdge(k)
	for _, d := range []*Client{a, b} {
		d.Expect(`{"type":"agent.reconnect","after_ms":"<any>"}`)
		d.ExpectClosed(1012)
	}
	c.Send(`{"type":"send","to":"agent-2","payload":0}`, `{"type":"send","to":"agent-1","payload":0}`)
	a, b = s.agent(1, "agent-1"), s.agent(2, "agent-2")
	a.Send(`{"type":"send_chunk","to":"agent-3","stream_id":"s","chunk":"2"}`, `{"type":"send_end","to":"agent-3","stream_id":"s"}`)
	c.Expect(`{"type":"message_chunk","chunk":"2"}`, `{"type":"message_end"}`)
	a.Await(`{"type":"message","from":"agent-3","payload":0}`) // what it was told of the space may come again
	s.mailed(b, 0, 1, "")
	c.Barrier() // nobody left the space
}

func beyondEnd(s *scene) {
	a, b := s.pair()
	s.mail(a, "agent-2", 0, 2)
	s.mailed(b, 0, 2, "")
	b.Drop()
	b = s.agent(2, "agent-2", "last_seq", strconv.FormatUint(1<<52, 10))
	b.Expect(`{"type":"gap"}`)
	s.mailed(b, 0, 2, "")
	a.Send(`{"type":"send","to":"agent-2","payload":2}`)
	s.mailed(b, 2, 3, "")
}
