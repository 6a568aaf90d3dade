package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

func TestLeadersStepDownUnderLoadAndOrderHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := testServer(t, 3)
	sure := func(c *Config) { c.Replicas, c.MaxRecords = 3, 1<<20 }
	a, b := testBroker(t, s, sure), testBroker(t, s, sure)
	const lanes = 8
	in := listen(t, b, bob, From{})
	var done atomic.Bool
	var wg sync.WaitGroup
	var sent [lanes]int
	for k := range lanes {
		wg.Go(func() {
			l := a.Lane(LaneConfig{From: agora.AgentID(fmt.Sprint(k)), Session: fmt.Sprint("s", k), Epoch: 1, To: bob})
			defer l.Close()
			for !done.Load() {
				for range 20 {
					l.Put(numbered(uint64(sent[k]+1), text(fmt.Sprint(sent[k]))), func(r Result) {
						if r.Err != nil || r.Again {
							t.Errorf("lane %d: %+v", k, r)
						}
					})
					sent[k]++
				}
				if err := l.Flush(await.Context(t)); err != nil {
					t.Errorf("Flush: %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		defer done.Store(true)
		upset(t, s, a.Streams()[0])
	})
	var got [lanes][]string
	count := func(msgs []agora.Message) {
		for _, m := range msgs {
			k := int(m.From[0] - '0')
			got[k] = append(got[k], string(m.Body))
		}
	}
	for !done.Load() {
		count(in.next(t))
	}
	wg.Wait()
	await.Within(await.Long, func() bool { // a leader that is new may not know all at once, so its word is no end
		count(in.quiet(t))
		for k := range lanes {
			if len(got[k]) < sent[k] {
				in.markLagging()
				return false
			}
		}
		return true
	})
	count(in.quiet(t))
	for k := range lanes {
		if !slices.Equal(got[k], names(0, sent[k])) {
			t.Errorf("lane %d: %d sent, %d arrived, or not in order", k, sent[k], len(got[k]))
		}
	}
	t.Logf("%+v %+v", a.Stats(), b.Stats())
}

// upset moves a stream's leader a few times, and has a node go away and come back.
func upset(t *testing.T, s *natsd.Server, stream string) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 6 {
		<-tick.C
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := s.StepDown(ctx, stream); err != nil {
			t.Logf("no step-down: %v", err)
		}
		cancel()
	}
	s.StopNode(1)
	for range 5 {
		<-tick.C
	}
	if err := s.StartNode(1); err != nil {
		t.Error(err)
	}
	for range 5 {
		<-tick.C
	}
}

// Any replica may be read: who returns waits for no election to get what is stored.
func TestWhoReturnsWhileThereIsNoLeaderGetsWhatAReplicaHas(t *testing.T) {
	t.Parallel()
	s := testServer(t, 3)
	b := testBroker(t, s, func(c *Config) { c.Replicas, c.URL, c.Options = 3, "", append(c.Options, s.Option(0)) })
	at := publish(t, b, "s1", names(0, 30)...) // with each, a replica learns that the ones before are stored
	s.StopNode(1)
	s.StopNode(2)
	if got := bodies(listen(t, b, bob, From{After: at[0]}).read(t, 20))[:20]; !slices.Equal(got, names(1, 21)) {
		t.Errorf("got %v", got)
	}
}

func TestThreeReplicasNeedAClusterAndTheErrorSaysSo(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	_, err := Connect(await.Context(t), Config{URL: s.URL(), Replicas: 3})
	if err == nil || !strings.Contains(err.Error(), "add servers") {
		t.Errorf("Connect = %v", err)
	}
	testBroker(t, s, func(c *Config) { c.Shards = 2 })
	for want, change := range map[string]func(*Config){
		"2 shards":     func(c *Config) { c.Shards = 4 },
		"kept in file": func(c *Config) { c.Shards, c.Memory = 2, true },
		"choose 1 to":  func(c *Config) { c.Shards = -1 },
	} {
		cfg := Config{URL: s.URL()}
		change(&cfg)
		if _, err := Connect(await.Context(t), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Connect = %v, want %q in it", err, want)
		}
	}
	changed := testBroker(t, s, func(c *Config) { c.Shards, c.MaxRecords, c.MaxAge = 2, 7, time.Hour })
	stream, err := changed.js.Stream(t.Context(), changed.Streams()[3])
	if err != nil {
		t.Fatal(err)
	}
	if c := stream.CachedInfo().Config; c.MaxMsgsPerSubject != 7 || c.MaxAge != time.Hour {
		t.Errorf("limits were not changed: %+v", c)
	}
}

func TestConnectSaysThatNobodyAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, Config{URL: "nats://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "no NATS server answers") {
		t.Errorf("Connect = %v", err)
	}
}

func TestABrokerReachesAnEmbeddedServerWithoutASocket(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, func(c *Config) { c.URL, c.Options = "", append(c.Options, s.Option(0)) })
	publish(t, b, "s1", "1")
	s.StopNode(0)
	await.True(t, "it is gone", func() bool { return !b.Connected() })
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it is back", b.Connected)
	publish(t, b, "s2", "2")
	if got := bodies(listen(t, b, bob, From{}).read(t, 2)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}
