package agoratest

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// briefScenes need records that live for seconds, and a short time-out.
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
	now := time.Now()
	<-time.After(s.opts.Node.MaxAge + s.opts.Node.MaxAge/10)
	await.True(s.T, "what was stored is gone", func() bool { return !s.keeps(now) })
}

// slept has agent-2, which is b, away until everything has expired, and proves
// that it sees no gap, whether it says where it stands or not.
func (s *scene) slept(a, b *Client, last uint64) {
	s.Helper()
	b.Drop()
	s.expire()
	begin := time.Now()
	c := s.agent(1, "agent-3")
	s.mail(a, "agent-3", 7, 8) // others get mail meanwhile
	s.arrives(c, 7, begin)
	b = s.agent(0, "agent-2")
	b.Barrier()
	b.Drop()
	begin = time.Now()
	b = s.agent(1, "agent-2", "last_seq", fmt.Sprint(last))
	s.mail(a, "agent-2", 8, 9)
	s.arrives(b, 8, begin)
}

// arrives has c get a numbered one-shot. Nothing comes before it, but for a gap where so much time has passed since c
// registered that something may have grown too old.
func (s *scene) arrives(c *Client, i int, begin time.Time) {
	s.Helper()
	for {
		f := c.Take("a message")
		if f.Match(fmt.Sprintf(`{"type":"message","payload":%d}`, i)) == "" {
			return
		}
		if f.Type() != "gap" || time.Since(begin) < s.opts.Node.MaxAge/2 {
			s.Fatalf("got %s before message %d", f, i)
		}
	}
}

func quietSleeper(s *scene) {
	a := s.agent(0, "agent-1")
	b, w := s.enter(1, "agent-2")
	s.slept(a, b, w.Uint("last_seq"))
}

func restedSleeper(s *scene) {
	if testing.Short() {
		s.Skip("left to make test")
	}
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
	begin := time.Now()
	b = s.agent(0, "agent-2", "last_seq", fmt.Sprint(last.Seq()))
	b.Expect(`{"type":"gap"}`)
	s.mail(a, "agent-2", 3, 4)
	s.arrives(b, 3, begin)
}

func silent(s *scene) {
	a, b := s.agent(2, "agent-1"), s.agent(2, "agent-2")
	c := s.open(2)
	c.Deafen()
	a.Deafen()
	a.AwaitClosed(1001)
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
