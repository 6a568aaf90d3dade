package simlog_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
)

// fence moves the fence of a lane and returns its sequence.
func (c *client) fence(p jslog.Location, epoch uint64) uint64 {
	c.Helper()
	for {
		seq, err := c.MoveFence(context.Background(), p.Stream, p.Fence("s"), epoch)
		if c.nodes == 1 || !errors.Is(err, jslog.ErrMoved) && !errors.Is(err, nats.ErrNoResponders) { // streams with replicas refuse now and then for no reason
			c.must(err)
			return seq
		}
	}
}

func refusesBehindFences(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	p := l.at("a")
	c.store(record(p, "x", 0, "x"))
	want(l, "before there is a fence, one that expects it", code(c.publish(record(p, "y", 5, "y"))), jslog.CodeWrongLast)
	first := c.fence(p, 1)
	want(l, "behind the fence, one that expects none", code(c.publish(record(p, "y", 0, "y"))), jslog.CodeWrongLast)
	c.store(record(p, "z", first, "z"))
	second := c.fence(p, 2)
	a := c.publish(record(p, "y", first, "y"))
	want(l, "behind the next, one that expects the first", code(a), jslog.CodeWrongLast)
	want(l, "that is fenced", a.Fenced(), true)
	want(l, "and not refused for want of room", a.Refused(), false)
	if _, err := c.MoveFence(context.Background(), p.Stream, p.Fence("s"), 1); !errors.Is(err, jslog.ErrDeposed) {
		l.Errorf("an older fence: %v, want %v", err, jslog.ErrDeposed)
	}
	c.store(record(p, "y", second, "y"))
	for _, body := range []string{"x", "z", "y"} {
		want(l, "republished", string(h.next().Data), body)
	}
	c.store(record(l.at("b"), "b", 0, "b")) // another lane has a fence of its own
}

func mayRefuseWhatIsStored(l *log) {
	c := l.client()
	c.make(nil)
	p := l.at("a")
	first := c.store(record(p, "x", 0, "x"))
	c.fence(p, 1)
	duplicate := jslog.Ack{Seq: first, Duplicate: true}
	again := func(what string, wantDuplicate bool) {
		a := c.publish(record(p, "x", 0, "x"))
		if wantDuplicate {
			want(l, what, a, duplicate)
		} else {
			want(l, what, code(a), jslog.CodeWrongLast)
		}
	}
	again("a record that was stored, behind a fence", l.nodes > 1)
	if l.sim == nil {
		return
	}
	l.sim.LookAtIDsFirst(2 * time.Minute)
	first = c.store(record(p, "w", c.fence(p, 2), "w"))
	c.fence(p, 3)
	want(l, "as streams with replicas do", c.publish(record(p, "w", 0, "w")), jslog.Ack{Seq: first, Duplicate: true})
	want(l, "one that was not stored", code(c.publish(record(p, "v", 0, "v"))), jslog.CodeWrongLast)
	<-time.After(2*time.Minute + time.Second)
	want(l, "once its window is over", code(c.publish(record(p, "w", 0, "w"))), jslog.CodeWrongLast)
	l.sim.Mend()
	l.sim.Refuse(100)
	a := c.publish(record(l.at("b"), "u", 0, "u"))
	want(l, "for no reason", a.Fenced(), true)
	l.sim.Mend()
	c.store(record(l.at("b"), "u", 0, "u"))
}

func agesFences(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxAge, s.Duplicates = time.Second, time.Second })
	p := l.at("a")
	seq := c.fence(p, 1)
	for {
		f, err := c.FenceAt(context.Background(), p.Stream, p.Fence("s"))
		l.must(err)
		if f == (jslog.Fence{}) {
			break
		}
		want(l, "fence", f.Seq, seq)
		<-time.After(100 * time.Millisecond)
	}
	want(l, "one that expects the fence that is gone", code(c.publish(record(p, "x", seq, "x"))), jslog.CodeWrongLast)
	c.store(record(p, "x", 0, "x"))
}

func keepsTheFirst(l *log) {
	c := l.client()
	c.make(nil)
	subject := jslog.FencePrefix + "t.agent." + l.shard + ".book.x"
	entry := func(body string) *nats.Msg {
		m := nats.NewMsg(subject)
		m.Header[jslog.ExpectedLast] = []string{"0"}
		m.Data = []byte(body)
		return m
	}
	got := make([]jslog.Ack, 8)
	var m *jslog.Record
	for m == nil { // a leader that is new may refuse all of them, and store none
		var racers sync.WaitGroup
		for k := range got {
			racers.Go(func() { got[k] = c.publish(entry(strconv.Itoa(k))) })
		}
		racers.Wait()
		var err error
		if m, err = c.Last(context.Background(), l.stream(), subject); errors.Is(err, jslog.ErrNone) {
			for k, a := range got {
				want(l, "entry "+strconv.Itoa(k)+" of which none is stored is refused", a.Err != nil, true)
			}
		} else {
			l.must(err)
		}
	}
	for k, a := range got {
		if stored := a.Err == nil; stored != (strconv.Itoa(k) == string(m.Body)) || !stored && !a.Fenced() {
			l.Errorf("entry %d is answered by %+v, and %s is stored", k, a, m.Body)
		}
	}
	s, err := c.State(context.Background(), l.stream(), "")
	l.must(err)
	want(l, "entries", s.Records, 1)
}

// letsNothingPastAFence races a lane's past holder against its fence.
func letsNothingPastAFence(l *log) {
	c, old := l.client(), l.client()
	c.make(nil)
	for round := range 20 {
		p := l.at("a" + strconv.Itoa(round))
		var holder sync.WaitGroup
		began := make(chan struct{})
		holder.Go(func() {
			for k := range 20 {
				old.publish(record(p, p.Live+"/"+strconv.Itoa(k), 0, "x"))
				if k == 2 {
					close(began)
				}
			}
		})
		<-began
		fence := c.fence(p, 1)
		last, err := c.Last(context.Background(), p.Stream, p.Log())
		l.must(err)
		holder.Wait()
		end, err := c.Last(context.Background(), p.Stream, p.Log())
		l.must(err)
		if end.Seq != last.Seq || last.Seq > fence {
			l.Errorf("the fence is at %d, the last record behind it %d, and %d in the end", fence, last.Seq, end.Seq)
		}
	}
}
