package broker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

const benchLanes = 200

// BenchmarkLanesToInboxes moves 100-byte chunks through lanes, log and inboxes, and compares
// that with as many messages through core NATS, which stores nothing, in the same run.
func BenchmarkLanesToInboxes(b *testing.B) {
	s := testServer(b, 1)
	from := testBroker(b, s, func(c *Config) { c.ShardBytes, c.MaxRecords = 1<<30, 1<<20 })
	to := testBroker(b, s, func(c *Config) { c.ShardBytes, c.MaxRecords = 1<<30, 1<<20 })
	body := make([]byte, 100)
	began := time.Now()
	through(b, from, to, body)
	ours := time.Since(began)
	began = time.Now()
	coreNATS(b, from.nc, to.nc, body)
	theirs := time.Since(began)
	b.ReportMetric(float64(b.N)/ours.Seconds(), "chunks/s")
	b.ReportMetric(float64(theirs)/float64(ours), "of-core")
	b.ReportMetric(float64(b.N)/float64(from.Stats().Records), "chunks/record")
}

func through(b *testing.B, from, to *Broker, body []byte) {
	var got atomic.Int64
	finished := make(chan struct{})
	var wg sync.WaitGroup
	for k := range benchLanes {
		addr := agora.ToAgent("default", agora.AgentID(fmt.Sprint("agent ", k)))
		woken := make(chan struct{}, 1)
		in := to.Listen(addr, From{}, func() { signal(woken) })
		defer in.Close()
		wg.Go(func() {
			for {
				msgs, err := in.Next(b.Context(), 64<<10)
				if got.Add(int64(len(msgs))) == int64(b.N) && len(msgs) > 0 {
					close(finished)
				}
				if len(msgs) > 0 && err == nil {
					continue
				}
				select {
				case <-woken:
				case <-finished:
					return
				}
			}
		})
	}
	var lanes []*Lane
	for k := range benchLanes {
		addr := agora.ToAgent("default", agora.AgentID(fmt.Sprint("agent ", k)))
		lanes = append(lanes, from.Lane(LaneConfig{From: "bench", Session: "s", Epoch: 1, To: addr}))
	}
	room := make(chan struct{}, 64*benchLanes) // as much is in flight at most
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		room <- struct{}{}
		lanes[n%benchLanes].Put(agora.Message{N: uint64(n/benchLanes + 1), Body: body}, func(r Result) {
			<-room
			if r.Err != nil {
				b.Error(r.Err)
			}
		})
	}
	<-finished
	b.StopTimer()
	wg.Wait()
	for _, l := range lanes {
		if err := l.Flush(b.Context()); err != nil { // what has arrived need not be acknowledged yet
			b.Error(err)
		}
		l.Close()
	}
}

func coreNATS(b *testing.B, from, to *nats.Conn, body []byte) {
	var got atomic.Int64
	finished := make(chan struct{})
	sub, err := to.Subscribe("bench.*", func(*nats.Msg) {
		if got.Add(1) == int64(b.N) {
			close(finished)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		b.Fatal(err)
	}
	if err := to.Flush(); err != nil {
		b.Fatal(err)
	}
	for n := range b.N {
		if err := from.Publish("bench."+fmt.Sprint(n%benchLanes), body); err != nil {
			b.Fatal(err)
		}
	}
	<-finished
	if err := sub.Unsubscribe(); err != nil {
		b.Fatal(err)
	}
}

func TestTheUsualAnswerIsReadWithoutAllocating(t *testing.T) {
	m := &nats.Msg{Data: []byte(`{"stream":"AGORA_AGENT_0", "seq":240518400001}`)}
	again := &nats.Msg{Data: []byte(`{"stream":"AGORA_AGENT_0","domain":"x","seq":7,"duplicate": true}`)}
	if n := testing.AllocsPerRun(100, func() {
		if a, err := jslog.ParseAck(m); err != nil || a.Seq != 240518400001 || a.Duplicate {
			t.Fatalf("got %+v, %v", a, err)
		}
		if a, err := jslog.ParseAck(again); err != nil || a.Seq != 7 || !a.Duplicate {
			t.Fatalf("got %+v, %v", a, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	for _, bad := range []string{``, `{}`, `{"stream":"x"}`, `{"stream":"x","seq":0}`, `no`} {
		if a, err := jslog.ParseAck(&nats.Msg{Data: []byte(bad)}); err == nil {
			t.Errorf("%q is read as %+v", bad, a)
		}
	}
}

func TestALiveRecordIsQueuedWithoutAllocating(t *testing.T) {
	b := testBroker(t, testServer(t, 1), nil)
	in := listen(t, b, bob, From{})
	in.quiet(t)
	m := nats.NewMsg(jslog.Locate(bob, 1).Live)
	m.Data = record.Of(record.Origin{Session: "s", ValidAt: time.Now().UnixMilli(), From: "alice"}, text("x"))
	seq, d := in.end.seq, new(readScratch)
	if n := testing.AllocsPerRun(1000, func() {
		seq++
		in.push(m, seq, seq-1)
		in.pop(d, 1<<20)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if in.state.lags() || in.live.bytes != 0 {
		t.Errorf("behind %v, %d bytes queued", in.state.lags(), in.live.bytes)
	}
	seq++
	in.push(m, seq+1, seq)
	if !in.state.lags() {
		t.Error("a record that was missed must show")
	}
}
