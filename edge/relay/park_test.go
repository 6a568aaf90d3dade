package relay_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// bench is an edge's relay on a log and a presence of its own, and one session there.
type bench struct {
	*testing.T
	log   *broker.Broker
	store *presence.Store
	relay *relay.Relay
	claim presence.Claim
	stuck atomic.Bool // nothing can be stored: all is refused for the moment
	stop  func()      // stops the log's server

	limits *admission.LiveLimits // of streams
}

func newBench(t *testing.T) *bench {
	ctx := await.Context(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	nats, err := natsd.Embed(ctx, natsd.Config{})
	must(err)
	t.Cleanup(nats.Shutdown)
	b := &bench{T: t, stop: nats.Shutdown, limits: admission.NewLiveLimits(admission.Limits{})}
	b.log, err = broker.Connect(ctx, broker.Config{URL: nats.URL(), Memory: true, GiveUp: await.Long, Election: await.Long})
	must(err)
	t.Cleanup(b.log.Close)
	redis, err := presence.Embed()
	must(err)
	t.Cleanup(redis.Close)
	client, err := presence.Dial("redis://" + redis.Addr())
	must(err)
	b.store = presence.New(presence.Config{Client: client, Lease: time.Hour})
	t.Cleanup(func() { b.store.Close() })
	must(b.store.SetWhole(ctx)) // a new server has lost nothing
	h := presence.Holder{Edge: "edge", Incarnation: "1"}
	_, err = b.store.Leases.Renew(ctx, h, "")
	must(err)
	b.claim, err = b.store.Sessions.Claim(ctx, presence.ClaimRequest{
		Tenant: "t", Agent: "alice", Principal: "p", Holder: h, Conn: "c", Session: "s1", Token: "token", Card: agora.Agent{ID: "alice", Name: "alice"},
	})
	must(err)
	_, err = b.store.Sessions.Begin(ctx, b.claim)
	must(err)
	b.relay = relay.New(relay.Config{
		Broker: b.log, Presence: b.store, MaxRecords: 4096, MaxAge: 10 * time.Minute, Usage: admission.NewUsage(b.limits), InFlight: 1 << 20,
		Valid: func() (time.Time, bool) { return b.log.Now(), !b.stuck.Load() },
	})
	t.Cleanup(b.relay.Close)
	return b
}

// say sends a part of a stream without a number, and returns what became of it.
func (b *bench) say(s *relay.Sender, to agora.Address, stream string, part agora.Part) error {
	b.Helper()
	told := make(chan error, 1)
	m := agora.Message{Kind: agora.Event, Part: part, To: to, Stream: stream, Body: []byte("part")}
	if err := s.Send(b.Context(), m, relay.Options{Asker: relay.AskerFunc(func(r relay.Sent) { told <- r.Err })}); err != nil {
		return err
	}
	return await.Recv(b.T, "an answer", told)
}

// round sends one numbered message to each of n addressees, and returns how many were stored and how many were there
// already.
func (b *bench) round(s *relay.Sender, n int, number uint64) (stored, again int) {
	b.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, 512) // under way at a time: on a busy machine thousands would wait for longer than they may
	told := relay.AskerFunc(func(r relay.Sent) {
		defer func() { <-places; all.Done() }()
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Err != nil:
			b.Errorf("number %d: %v", number, r.Err)
		case r.Again:
			again++
		default:
			stored++
		}
	})
	const side = 16
	all.Add(n)
	for from := range side {
		all.Go(func() {
			for k := from; k < n; k += side {
				places <- struct{}{}
				m := agora.Message{Kind: agora.Event, To: agora.ToSpace("t", fmt.Sprint("space-", k)), N: number, Body: []byte("body")}
				if err := s.Send(b.Context(), m, relay.Options{Asker: told}); err != nil {
					told(relay.Sent{Err: err})
				}
			}
		})
	}
	all.Wait()
	return stored, again
}

// quiet waits until nobody is at work for a lane: who asks the log for one that was put aside meanwhile holds it until
// the answer is there.
func (b *bench) quiet() {
	b.Helper()
	await.True(b, "lanes are not at work any more", func() bool {
		var at bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&at, 1); err != nil {
			b.Fatal(err)
		}
		return !bytes.Contains(at.Bytes(), []byte("broker.(*Lane)."))
	})
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestAnAgentThatWritesToManyKeepsFewLanes(t *testing.T) {
	const n = addressees
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	for _, want := range []struct {
		number        uint64
		stored, again int
	}{{1, n, 0}, {1, 0, n}, {2, n, 0}} {
		if stored, again := b.round(s, n, want.number); stored != want.stored || again != want.again {
			t.Fatalf("number %d: %d stored, %d again, want %+v", want.number, stored, again, want)
		}
	}
	b.relay.Tick(t.Context()) // what was under way at once is open until then
	st := b.log.Stats()
	if st.Lanes > 512 || st.Fences != 0 {
		t.Errorf("%d lanes are open and %d looked into the log, want few and none", st.Lanes, st.Fences)
	}
	if got := len(s.Lanes()); got != n {
		t.Errorf("%d lanes are told to presence, want all %d", got, n)
	}
	b.quiet()
	with := heap()
	s.Close()
	s = nil
	kept := with - heap()
	t.Logf("%d lanes for %d addressees: %d KiB, %d bytes an addressee", st.Lanes, n, kept>>10, kept/n)
	if most := 4<<20 + 400*n; kept > most {
		t.Errorf("the session keeps %d KiB, want %d at most", kept>>10, most>>10)
	}
}
