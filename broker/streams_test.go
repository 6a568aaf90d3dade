package broker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/internal/await"
)

// deleteStream deletes a stream as an operator would, beside the Broker.
func deleteStream(t *testing.T, b *Broker, name string) {
	t.Helper()
	if err := b.js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// change sets a stream up otherwise, as an operator would, and returns how it was.
func change(t *testing.T, b *Broker, name string, change func(*jetstream.StreamConfig)) (before jetstream.StreamConfig) {
	t.Helper()
	await.True(t, "the stream is there", func() bool { before = streamConfigOf(t, b, name); return before.Name != "" })
	now := before
	change(&now)
	if _, err := b.js.UpdateStream(await.Context(t), now); err != nil {
		t.Fatal(err)
	}
	return before
}

// shortest is for how short a time a server can be told to keep something.
const shortest = 100 * time.Millisecond

// grow has all that a stream holds grow too old to be kept. Who is connected to it continues as configured.
func grow(t *testing.T, b *Broker, name string) {
	t.Helper()
	before := change(t, b, name, func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = shortest, shortest })
	await.True(t, "all that is stored is too old", func() bool { s, err := b.log.State(t.Context(), name, ""); return err == nil && s.Records == 0 })
	change(t, b, name, func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = before.MaxAge, before.Duplicates })
}

// present counts the Broker's streams that are there.
func present(t *testing.T, b *Broker) (n int) {
	t.Helper()
	for _, name := range b.Streams() {
		if streamConfigOf(t, b, name).Name != "" {
			n++
		}
	}
	return n
}

// streamConfigOf returns how a stream is set up; nothing while it is not there or nobody answers.
func streamConfigOf(t *testing.T, b *Broker, name string) jetstream.StreamConfig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return jetstream.StreamConfig{}
	}
	return s.CachedInfo().Config
}

func TestAStreamDeletedUnderARunningEdgeIsMadeAnew(t *testing.T) {
	t.Parallel()
	for about, c := range map[string]struct {
		audit  time.Duration
		listen bool // somebody listens at this edge
		wait   bool // nobody publishes before the streams are there again
	}{
		"while somebody listens":   {time.Hour, true, false},
		"while somebody publishes": {time.Hour, false, false},
		"while nobody does":        {200 * time.Millisecond, false, true},
	} {
		t.Run(about, func(t *testing.T) {
			b := testBroker(t, testServer(t, 1), func(cfg *Config) { cfg.Audit = c.audit })
			if c.listen {
				listen(t, b, bob, From{})
			}
			lane := b.Lane(LaneConfig{From: "alice", To: bob, Session: "s1", Epoch: 1})
			t.Cleanup(lane.Close)
			before := store(t, lane, text("before"))
			for range 2 { // the first one may be found by the look that every Broker takes soon after it connects
				deleteStream(t, b, b.Streams()[0])
				if c.wait {
					await.True(t, "the stream is there again", func() bool { return present(t, b) == len(b.Streams()) })
				}
				after := store(t, lane, text("after"))
				if after <= before {
					t.Errorf("stored at %d, want it behind %d of the stream that is gone", after, before)
				}
				before = after
			}
			store(t, lane, text("last"))
			var got []string
			in := listen(t, b, bob, From{After: before, Tail: before, TailAt: time.Now()})
			for !slices.Contains(got, "last") { // maybe behind a gap
				got = append(got, bodies(in.next(t))...)
			}
		})
	}
}

func TestStreamsThatWereChangedOrDeletedAreRightAfterAReconnect(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, func(cfg *Config) { cfg.Audit = time.Hour })
	names := b.Streams()
	right := change(t, b, names[0], func(wrong *jetstream.StreamConfig) {
		wrong.MaxAge, wrong.MaxBytes, wrong.MaxMsgsPerSubject, wrong.Duplicates = time.Hour, 1<<20, 3, time.Second
		wrong.MaxMsgs, wrong.MaxMsgSize, wrong.Discard = 5, 1000, jetstream.DiscardOld
		wrong.RePublish, wrong.AllowDirect = nil, false
	})
	deleteStream(t, b, names[1])
	s.StopNode(0)
	await.True(t, "it is gone", func() bool { return !b.Connected() })
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the deleted stream is there again", func() bool { return present(t, b) == len(names) })
	await.True(t, "the changed one is as configured", func() bool {
		have := streamConfigOf(t, b, names[0])
		return have.MaxAge == right.MaxAge && have.MaxBytes == right.MaxBytes && have.MaxMsgsPerSubject == right.MaxMsgsPerSubject &&
			have.Duplicates == right.Duplicates && have.MaxMsgs == -1 && have.MaxMsgSize == -1 &&
			have.Discard == right.Discard && have.AllowDirect && have.RePublish != nil && *have.RePublish == *right.RePublish
	})
}

func TestAWatcherLeavesTheLimitsOfAnotherConfigurationAlone(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	audited := testBroker(t, s, func(cfg *Config) { cfg.Audit = 50 * time.Millisecond })
	testBroker(t, s, func(cfg *Config) { cfg.Audit, cfg.MaxRecords = time.Hour, 7 }) // an edge of the next configuration
	names := audited.Streams()
	deleteStream(t, audited, names[1]) // so that a look shows
	await.True(t, "a look was taken", func() bool { return present(t, audited) == len(names) })
	if c := change(t, audited, names[0], func(*jetstream.StreamConfig) {}); c.MaxMsgsPerSubject != 7 {
		t.Errorf("a look set MaxMsgsPerSubject back to %d, want 7 of the younger configuration", c.MaxMsgsPerSubject)
	}
}
