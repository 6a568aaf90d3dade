package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

// settled returns a listener that has everything.
func settled(t *testing.T, b *Broker) *listener {
	t.Helper()
	in := listen(t, b, bob, From{})
	in.quiet(t)
	return in
}

// deaf has something done of which no live record reaches b.
func deaf(t *testing.T, b *Broker, do func()) {
	t.Helper()
	b.dispatch.mu.Lock()
	defer b.dispatch.mu.Unlock()
	top := b.dispatch.m[jslog.Locate(bob, b.cfg.Shards).Live]
	if err := top.nats.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	do()
	sub, err := b.nc.ChanSubscribe(top.at.Live, b.dispatch.chans[0])
	if err != nil {
		t.Fatal(err)
	}
	top.nats = sub
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// silentTail stores a record that is never handed on to b, from an edge that is gone then.
func silentTail(t *testing.T, s *natsd.Server, b *Broker, change func(*Config)) {
	t.Helper()
	writer := testBroker(t, s, change)
	deaf(t, b, func() { publish(t, writer, "s1", "silent") })
	writer.Close()
}

// found reads the silent tail. Nothing but what the test is about brings it: all inboxes are compared once an hour.
func found(t *testing.T, in *listener, want ...string) {
	t.Helper()
	if got := bodies(in.read(t, len(want))); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// led waits until a stream has a leader that answers.
func led(t *testing.T, b *Broker, stream string) {
	t.Helper()
	await.True(t, "the stream has a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := b.log.State(ctx, stream, "")
		return err == nil
	})
}

func TestASilentTailIsFoundOnceThereIsANewLeader(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"announced": true, "unannounced": false} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, 3)
			replicated := func(c *Config) {
				if c.Replicas = 3; told {
					c.Probe = time.Hour // nobody asks
				}
			}
			b := testBroker(t, s, replicated)
			stream := jslog.Locate(bob, 1).Stream
			in := settled(t, b)
			if !told { // the word of it is lost
				if err := b.advisories.Unsubscribe(); err != nil {
					t.Fatal(err)
				}
				publish(t, b, "s0", "before")
				in.read(t, 1)
				await.True(t, "the leader of before has been asked", func() bool { return b.watchers[stream].bytes.Load() > 0 })
			}
			silentTail(t, s, b, replicated)
			if err := s.StepDown(await.Context(t), stream); err != nil {
				t.Fatal(err)
			}
			led(t, b, stream)
			found(t, in, "silent")
		})
	}
}

func TestASilentTailIsFoundOnceTheLeaderIsBack(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	in := settled(t, b)
	silentTail(t, s, b, nil)
	s.StopNode(0)
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the connection is back", b.Connected)
	led(t, b, jslog.Locate(bob, 1).Stream)
	found(t, in, "silent")
}

func TestWhatWasStoredWhileTheConnectionWasAwayIsFound(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	in := settled(t, b)
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	writer := testBroker(t, s, nil)
	publish(t, writer, "s1", "1", "2")
	writer.Close()
	c.Reset()
	await.True(t, "the connection is back", b.Connected)
	found(t, in, "1", "2")
}

func TestARecordLostOnItsWayIsToldAgain(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	in := settled(t, b)
	deaf(t, b, func() { publish(t, a, "s1", "1", "2") })
	found(t, in, "1", "2")
	// Nobody is notified of what has come: one message for a stretch of records, none for one that continues.
	in.quiet(t)
	refills := b.Stats().Refills
	publish(t, a, "s2", names(0, 50)...)
	in.read(t, 50)
	await.True(t, "it was told again", func() bool { a.tails.mu.Lock(); defer a.tails.mu.Unlock(); return len(a.tails.m) == 0 })
	in.quiet(t)
	if n := b.Stats().Refills; n != refills {
		t.Errorf("%d reads of the log for what had come", n-refills)
	}
}

func TestASubjectOthersHearOfLateIsComparedAWhileAfter(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, func(c *Config) { c.mature = 0 })
	in := settled(t, b)
	deaf(t, b, func() { publish(t, a, "s1", "early") })
	a.Close()
	found(t, in, "early")
}

func TestQuietInboxesCostNoAudit(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	settled(t, b)
	w := b.newWatchers()[jslog.Locate(bob, 1).Stream] // one that the Broker does not run
	audited := time.Now()
	w.audited = audited
	for k := range 3 {
		if err := w.look(time.Now().Add(time.Duration(k) * probeEvery)); err != nil {
			t.Fatal(err)
		}
	}
	if w.audited != audited {
		t.Error("inboxes were compared though nothing had happened")
	}
}

func TestALogMadeAnewBehindOurBackIsFound(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	publish(t, b, "s1", "1")
	in := settled(t, b)
	for _, stream := range b.Streams() {
		if err := b.js.DeleteStream(t.Context(), stream); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
	}
	l := b.Lane(lane("s2", 1, false))
	defer l.Close()
	await.True(t, "the log takes records again", func() bool { return put(t, l, text("2")).Err == nil })
	await.True(t, "all streams are there again", func() bool { return present(t, b) == len(b.Streams()) })
	got := in.read(t, 2)
	if !slices.Equal(bodies(got), []string{"gap", "2"}) {
		t.Errorf("got %v", fmt.Sprint(bodies(got)))
	}
}

// The last message of each of many inboxes, sent every time, would hold up all that the connection carries.
func TestInboxesThatHaveAllAreComparedWithWhatCameSince(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	in := settled(t, b)
	publish(t, b, "s1", "1")
	in.read(t, 1)
	w := b.newWatchers()[jslog.Locate(bob, 1).Stream] // one that the Broker does not run
	compare := func() {
		t.Helper()
		if err := w.audit.all(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func() {
		t.Helper()
		last, err := b.log.LastSequences(b.ctx, auditTime, w.stream, []string{jslog.Locate(bob, 1).Log()}, b.dispatch.compared(w.stream).upTo+1)
		if err != nil || len(last) != 0 {
			t.Errorf("the log tells %v, %v; want nothing of what was compared", last, err)
		}
	}
	compare()
	nothing()

	silentTail(t, s, b, nil)
	compare()
	if got := bodies(in.read(t, 1)); got[0] != "silent" {
		t.Errorf("got %q, want what came since", got)
	}
	in.quiet(t)

	// One that reads the log is not compared; what it goes live with may be older than what came meanwhile.
	reads := func(is bool) {
		b.dispatch.m[jslog.Locate(bob, 1).Live].each(func(i *Inbox) {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.state = inboxIdle; is {
				i.state = inboxLags
			}
		})
	}
	silentTail(t, s, b, nil)
	reads(true)
	compare()
	nothing()
	reads(false)
	compare()
	if got := bodies(in.read(t, 1)); got[0] != "silent" {
		t.Errorf("got %q, want what came while the log was read", got)
	}
}

func TestALogMadeAnewIsComparedFromItsBegin(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	in := settled(t, b)
	publish(t, b, "s1", "1", "2", "3")
	in.read(t, 3)
	w := b.newWatchers()[jslog.Locate(bob, 1).Stream]
	if err := w.audit.all(b.ctx); err != nil || b.dispatch.compared(w.stream).upTo == 0 {
		t.Fatalf("compared %+v, %v", b.dispatch.compared(w.stream), err)
	}
	c := b.dispatch.compared(w.stream)
	b.dispatch.markRestarted(w.stream)
	if b.dispatch.setCompared(w.stream, c); b.dispatch.compared(w.stream).upTo != 0 {
		t.Error("what was compared with the old log counts for the new one")
	}
}

func TestARoundComparesManyInboxesAFewAtATime(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	in := settled(t, b)
	for k := range 2 * jslog.LastBatch {
		other := b.Listen(agora.ToAgent("default", agora.AgentID(fmt.Sprint("quiet ", k))), From{}, func() {})
		defer other.Close()
	}
	silentTail(t, s, b, nil)
	w := b.newWatchers()[jslog.Locate(bob, 1).Stream] // one that the Broker does not run
	round := func() (looks int) {
		w.audited = time.Now().Add(-w.b.cfg.Audit)
		for now := time.Now(); looks == 0 || len(w.audit.pass.left) > 0; looks++ {
			if err := w.compareOld(now); err != nil {
				t.Fatal(err)
			}
		}
		return looks
	}
	if looks, want := round(), (2*jslog.LastBatch+1)/jslog.LastBatch+1; looks != want {
		t.Errorf("all were compared in %d looks, want %d", looks, want)
	}
	if got := bodies(in.read(t, 1)); got[0] != "silent" {
		t.Errorf("got %q, want what had not been handed on", got)
	}
	round() // with the inbox that read the log then
	if looks := round(); looks != 1 {
		t.Errorf("all were compared in %d looks though nothing had been stored since, want 1", looks)
	}
}
