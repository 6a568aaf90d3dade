package simlog_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/internal/simlog"
)

// bodies reads a subject by its leader, record by record.
func (c *client) bodies(p jslog.Location) (all []string) {
	c.Helper()
	for seq := uint64(1); ; {
		m, err := c.Next(context.Background(), p.Stream, p.Log(), seq)
		if errors.Is(err, jslog.ErrNone) {
			return all
		}
		c.must(err)
		all = append(all, string(m.Body))
		seq = m.Seq + 1
	}
}

func purges(l *log) {
	c := l.client()
	c.make(nil)
	ctx, p := context.Background(), l.at("a")
	c.put("a", 0, 3)
	c.put("b", 0, 2)
	last := c.put("a", 3, 1)
	n, err := c.Drop(ctx, p, last)
	l.must(err)
	want(l, "dropped", n, 3)
	want(l, "left", strings.Join(c.bodies(p), " "), "3")
	want(l, "left of another", len(c.bodies(l.at("b"))), 2)
	n, err = c.Drop(ctx, p, 0)
	l.must(err)
	want(l, "dropped", n, 1)
	if seq := c.put("a", 4, 1); seq <= last {
		l.Errorf("the next record has sequence %d, those before it ended at %d", seq, last)
	}
	want(l, "an id of what was dropped", c.publish(record(p, "a/3", 0, "3")), jslog.Ack{Seq: last, Duplicate: true})
}

func dropsTheOldestOfASubject(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = 3 })
	p := l.at("a")
	c.put("b", 0, 1)
	fence := c.fence(p, 1)
	for k := range 7 {
		c.store(record(p, strconv.Itoa(k), fence, strconv.Itoa(k)))
	}
	want(l, "left", strings.Join(c.bodies(p), " "), "4 5 6")
	want(l, "left of another", len(c.bodies(l.at("b"))), 1)
	f, err := c.FenceAt(context.Background(), p.Stream, p.Fence("s"))
	l.must(err)
	want(l, "fence", f.Seq, fence)
}

func refusesWhenFull(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxBytes = 4 << 10 })
	body := strings.Repeat("x", 1000)
	stored := 0
	var refused jslog.Ack
	for refused = c.publish(record(l.at("a"), "0", 0, body)); refused.Err == nil && stored < 10; {
		stored++
		refused = c.publish(record(l.at("a"), strconv.Itoa(stored), 0, body))
	}
	want(l, "answer of a stream that is full", code(refused), jslog.CodeStoreFailed)
	want(l, "that is for want of room", refused.Refused(), true)
	want(l, "that is not for its fence", refused.Fenced(), false)
	want(l, "kept", len(c.bodies(l.at("a"))), stored)
	n, err := c.Drop(context.Background(), l.at("a"), 0)
	l.must(err)
	want(l, "dropped", n, stored)
	c.store(record(l.at("a"), strconv.Itoa(stored), 0, body)) // under the id that was refused
}

func dropsWhatIsOld(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxAge, s.Duplicates = time.Second, 500*time.Millisecond })
	h := c.hear()
	last := c.put("a", 0, 3)
	await.True(l, "what is old is gone", func() bool { return len(c.bodies(l.at("a"))) == 0 })
	s := c.led(l.stream())
	want(l, "last", s.Last, last)
	want(l, "first", s.First, last+1)
	want(l, "the next", c.put("a", 3, 1), last+1)
	for range 3 {
		h.next()
	}
	want(l, "before it", before(h.next()), 0)
}

// runsOutOfStorage has a server of its own: others would be out of storage for all.
func runsOutOfStorage(l *log) {
	if l.nodes > 1 {
		return // as one alone
	}
	c := l.client()
	if l.sim == nil {
		s := servers.StartNATS(l.T, servers.NATSConfig{MaxStore: "128KB"})
		own := *l
		own.url = "nats://" + s.Addr()
		c = own.client()
	}
	c.make(func(s *jetstream.StreamConfig) { s.MaxBytes = -1 })
	c.put("a", 0, 1)
	if l.sim != nil {
		l.sim.Fill(jslog.AgentKind, true)
	}
	body := strings.Repeat("x", 8<<10)
	var a jslog.Ack
	for k := 0; a.Err == nil && k < 1000; k++ {
		a = c.publish(record(l.at("b"), strconv.Itoa(k), 0, body))
	}
	want(l, "answer without storage", code(a), jslog.CodeResources)
	want(l, "that is for want of room", a.Refused(), true)
	want(l, "what was kept", len(c.bodies(l.at("a"))), 1)
	if l.sim != nil {
		l.sim.Fill(jslog.AgentKind, false)
		c.put("b", 0, 1)
	}
}

func answersForNothingElse(l *log) {
	c := l.client()
	c.make(nil)
	elsewhere := l.at("a")
	elsewhere.Live = jslog.LivePrefix + "t.agent.none.a"
	want(l, "a record that no stream takes", c.publish(record(elsewhere, "x", 0, "x")).Absent, true)
	_, err := c.nc.Request("agora.ask.nobody", nil, 10*time.Second)
	want(l, "a question to nobody", errors.Is(err, nats.ErrNoResponders), true)
	_, err = c.Last(context.Background(), "AGORA_AGENT_none", ">")
	if e, ok := errors.AsType[*jetstream.APIError](err); !ok || e.ErrorCode != jetstream.JSErrCodeStreamNotFound {
		l.Errorf("a stream that is not there: %v", err)
	}
	if l.sim == nil {
		return
	}
	l.sim.SetLeader(jslog.AgentKind, simlog.Absent)
	want(l, "a record for whose stream nobody answers", c.publish(record(l.at("a"), "x", 0, "x")).Absent, true)
	l.sim.Mend()
	c.put("a", 0, 1)
}
