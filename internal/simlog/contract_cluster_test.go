package simlog_test

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/simlog"
)

// changesLeaders has a stream's leader step down, die, or be silent while lanes are written. Of a record that is not
// acknowledged nothing is known; one that is stands in the log once, where its answer says, and a retry tells what
// became of it. What was stored may not be republished, or more than once, and nothing else is.
func changesLeaders(l *log) {
	if l.sim == nil && l.nodes == 1 {
		return // there is no other
	}
	for _, d := range l.disturbances() {
		s := l.disturb(d)
		l.Logf("%s: %+v", d.name, s)
		if d.must != nil && !d.must(s) {
			l.Errorf("%s: what it is to show was not seen: %+v", d.name, s)
		}
	}
}

// seen is how often what may happen did.
type seen struct {
	acked, refused, absent, unknown int // answers
	lost, unheard                   int // of those that are not acknowledged: not stored; stored
	quiet, again                    int // stored and not republished; republished more than once
}

// disturbance is what happens to the servers.
type disturbance struct {
	name   string
	begin  func()
	end    func()
	must   func(seen) bool // be seen; nil for nothing: it may happen
	passes bool            // what was republished has passed before it ends
}

func (l *log) disturbances() []disturbance {
	nothing := func() {}
	if l.sim == nil {
		stepDown := func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = l.cluster.StepDown(ctx, l.stream()) // its answer may be lost
		}
		leader := 0
		return []disturbance{
			{"the leader steps down", stepDown, nothing, nil, false},
			{"the leader steps down again", stepDown, nothing, nil, false},
			{"the leader dies", func() { leader = l.leader(); l.cluster.StopNode(leader) }, func() { l.must(l.cluster.StartNode(leader)) }, nil, false},
		}
	}
	is := func(leader simlog.Leader) func() { return func() { l.sim.SetLeader(jslog.AgentKind, leader) } }
	return []disturbance{
		{"the leader dies", is(simlog.Dying), l.sim.Mend, func(s seen) bool { return s.lost > 0 && s.unheard > 0 && s.quiet > 0 }, true},
		{"the leader is silent", is(simlog.Silent), l.sim.Mend, func(s seen) bool { return s.lost > 0 && s.unheard == 0 }, false},
		{"there is no leader", is(simlog.Absent), l.sim.Mend, func(s seen) bool { return s.absent > 0 && s.unheard == 0 }, false},
		{"the tail is republished again", l.sim.Repeat, nothing, func(s seen) bool { return s.quiet == 0 }, false},
		{"half of what is republished is lost", func() { l.sim.Lose(50) }, l.sim.Mend, func(s seen) bool { return s.quiet > 0 && s.lost == 0 }, true},
		{"what is republished comes late", func() { l.sim.Delay(true) }, l.sim.Mend, func(s seen) bool { return s.quiet == 0 && s.again == 0 && s.lost == 0 }, false},
		{"records are refused for no reason", func() { l.sim.Refuse(50) }, l.sim.Mend, func(s seen) bool { return s.refused > 0 && s.unheard == 0 }, false},
		{"connections end", l.sim.Disconnect, nothing, func(s seen) bool { return s.acked > 0 }, false},
	}
}

// leader returns which node leads the case's stream.
func (l *log) leader() int {
	name := l.client().led(l.stream()).Leader
	k, err := strconv.Atoi(name[len("agora-"):][:1])
	l.must(err)
	return k
}

const (
	lanes   = 6
	records = 40 // of each
)

// disturb has lanes written, one record of each at a time, while something happens, and holds what came of it against
// what may. The last half is written once it has happened, however fast the first was.
func (l *log) disturb(d disturbance) (s seen) {
	c := l.client()
	c.make(nil)
	defer func() { l.must(c.js.DeleteStream(context.Background(), l.stream())) }()
	live := l.client().hear()
	acks := make([][]jslog.Ack, lanes)
	began, happened := make(chan struct{}, lanes), make(chan struct{})
	var writers sync.WaitGroup
	for lane := range lanes {
		w := l.client()
		acks[lane] = make([]jslog.Ack, records)
		writers.Go(func() {
			for k := range records {
				switch k {
				case records / 4:
					began <- struct{}{}
				case records / 2:
					<-happened
				}
				acks[lane][k], _ = w.Publish(context.Background(), l.nth(lane, k), 100*time.Millisecond) // 0: nothing is known
			}
		})
	}
	for range lanes {
		<-began
	}
	d.begin()
	close(happened)
	writers.Wait()
	if d.passes {
		l.must(live.nc.Flush())
	}
	d.end()
	c.led(l.stream())
	heard := map[uint64]int{}
	for lane, of := range acks {
		l.settle(c, lane, of, &s)
	}
	end := c.put("end", 0, 1)
	await.True(l, "the end is republished", func() bool { return live.drain(heard)[end] > 0 || live.renew(c, &end) })
	l.compare(c, heard, end, &s)
	return s
}

// nth is a record of a lane.
func (l *log) nth(lane, k int) *nats.Msg {
	name := "a" + strconv.Itoa(lane)
	return record(l.at(name), name+"/"+strconv.Itoa(k), 0, strconv.Itoa(k))
}

// settle looks in the log for what was published in a lane, publishes what is not acknowledged again, and counts.
func (l *log) settle(c *client, lane int, acks []jslog.Ack, s *seen) {
	l.Helper()
	p := l.at("a" + strconv.Itoa(lane))
	stands := l.where(c, p)
	for k, a := range acks {
		at, stored := stands[strconv.Itoa(k)]
		switch {
		case a.Seq > 0:
			s.acked++
			want(l, "where an acknowledged record stands", at, a.Seq)
			continue
		case a.Fenced():
			s.refused++
		case a.Absent:
			s.absent++
		case a.Err != nil && a.Err.ErrorCode != jslog.CodeDuplicateOnWay:
			l.Errorf("a record is answered by %v", a.Err)
		default:
			s.unknown++
		}
		if s.lost++; stored {
			s.lost--
			s.unheard++
		}
		var again jslog.Ack
		await.True(l, "a record that comes again is taken", func() bool {
			again, _ = c.Publish(context.Background(), l.nth(lane, k), time.Second)
			return again.Seq > 0
		})
		if stored {
			want(l, "a record that was stored, again", again, jslog.Ack{Seq: at, Duplicate: true})
		} else if !again.Duplicate && len(stands) > 0 && again.Seq <= at {
			l.Errorf("a record that was lost is stored at %d", again.Seq)
		}
	}
	want(l, "records of a lane in the end", len(l.where(c, p)), records)
}

// where returns the sequences of a subject's records by their bodies, none of which is there twice.
func (l *log) where(c *client, p jslog.Location) map[string]uint64 {
	l.Helper()
	all := map[string]uint64{}
	for seq := uint64(1); ; {
		m, err := c.Next(context.Background(), p.Stream, p.Log(), seq)
		if err == jslog.ErrNone {
			return all
		}
		l.must(err)
		if before := all[string(m.Body)]; before > 0 {
			l.Errorf("%s stands at %d and %d of %s", m.Body, before, m.Seq, p.Log())
		}
		all[string(m.Body)] = m.Seq
		seq = m.Seq + 1
	}
}

// drain takes what has been republished, and counts it by sequence.
func (h *hearing) drain(heard map[uint64]int) map[uint64]int {
	for {
		m, err := h.sub.NextMsg(time.Millisecond)
		if err != nil {
			return heard
		}
		if m.Header != nil {
			heard[sequence(m)]++
		}
	}
}

// renew stores one more record behind all: the last may have been republished to nobody.
func (h *hearing) renew(c *client, end *uint64) bool {
	*end = c.put("end", int(*end), 1)
	return false
}

// compare holds what was republished against what is stored.
func (l *log) compare(c *client, heard map[uint64]int, end uint64, s *seen) {
	stored := map[uint64]bool{}
	for seq := uint64(1000); seq <= end; seq++ {
		if m, err := c.At(context.Background(), l.stream(), seq); err == nil {
			stored[m.Seq] = true
		}
	}
	for seq, n := range heard {
		if !stored[seq] {
			l.Errorf("%d was republished and is not stored", seq)
		}
		if n > 1 {
			s.again++
		}
	}
	for seq := range stored {
		if heard[seq] == 0 && seq < end {
			s.quiet++
		}
	}
}

// answersLate reads replicas while records are stored: each answers with a beginning of the log, which the leader knows
// as a whole.
func answersLate(l *log) {
	c := l.client()
	c.make(nil)
	p := l.at("a")
	a := c.put("a", 0, 10)
	b := c.put("b", 0, 1)
	c.caughtUp(p, 10)
	if l.sim != nil {
		l.sim.Lag(jslog.AgentKind, true)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		c.put("a", 10, 30)
		c.put("b", 1, 1)
	})
	for range 50 {
		l.beginning(c, p, 10)
	}
	writer.Wait()
	last, err := c.Last(context.Background(), p.Stream, p.Log())
	l.must(err)
	want(l, "the leader's last", string(last.Body), "39")
	if l.sim != nil {
		want(l, "records of a replica that lags", l.beginning(c, p, 10), 10)
		got, err := c.LastSequences(context.Background(), time.Second, l.stream(), []string{p.Log(), l.at("b").Log()}, 0)
		l.must(err)
		want(l, "the last record that it has", got[p.Log()], a)
		want(l, "that of another", got[l.at("b").Log()], b)
		l.sim.Lag(jslog.AgentKind, false)
	}
	c.caughtUp(p, 40)
}

// beginning reads all that a replica has of a subject, and returns how much that is.
func (l *log) beginning(c *client, p jslog.Location, least int) int {
	l.Helper()
	page, err := c.Read(context.Background(), jslog.Query{Stream: p.Stream, Subject: p.Log()})
	l.must(err)
	for k, m := range page.Records {
		want(l, "a record of a beginning", string(m.Body), strconv.Itoa(k))
	}
	if len(page.Records) < least && l.nodes == 1 || len(page.Records) > 40 {
		l.Errorf("%d records, %d were known", len(page.Records), least)
	}
	return len(page.Records)
}

// answersWhole reads replicas while records take the places of others: each answers with all that a subject kept at one
// moment.
func answersWhole(l *log) {
	const kept = 3
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = kept })
	p := l.at("a")
	c.put("a", 0, kept)
	c.caughtUp(p, kept)
	if l.sim != nil {
		l.sim.Lag(jslog.AgentKind, true)
		defer l.sim.Lag(jslog.AgentKind, false)
	}
	var writer sync.WaitGroup
	writer.Go(func() { c.put("a", kept, 30) })
	for range 50 {
		c.keptAtOnce(p, kept)
	}
	writer.Wait()
	if first := c.keptAtOnce(p, kept); l.sim != nil {
		want(l, "the first record of a replica that lags", first, 0)
		page, err := c.Read(context.Background(), jslog.Query{Stream: p.Stream, Subject: p.Log(), Batch: 2})
		l.must(err)
		want(l, "records in a batch of two", len(page.Records), 2)
		want(l, "left", page.Pending, 1)
		got, err := c.LastSequences(context.Background(), time.Second, l.stream(), []string{p.Log(), l.at("b").Log()}, 0)
		l.must(err)
		want(l, "last record of a replica that lags", got[p.Log()], 1000+kept-1)
	}
}

// keptAtOnce reads all that a replica has of a subject, which is as many records as are kept, one behind the other. It
// returns the first one's number.
func (c *client) keptAtOnce(p jslog.Location, kept int) (first int) {
	c.Helper()
	page, err := c.Read(context.Background(), jslog.Query{Stream: p.Stream, Subject: p.Log()})
	c.must(err)
	want(c.log, "records of a subject that is full", len(page.Records), kept)
	for k, m := range page.Records {
		n, err := strconv.Atoi(string(m.Body))
		c.must(err)
		if k == 0 {
			first = n
		}
		want(c.log, "a record behind another", n, first+k)
	}
	return first
}
