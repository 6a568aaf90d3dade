package broker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// deleteStream deletes a stream as an operator would, beside the Broker.
func deleteStream(t *testing.T, b *Broker, name string) {
	t.Helper()
	if err := b.js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
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
	for about, c := range map[string]struct {
		audit time.Duration
		use   bool // somebody publishes at once
	}{
		"noticed by the watcher":   {200 * time.Millisecond, false},
		"noticed by who publishes": {time.Hour, true},
	} {
		t.Run(about, func(t *testing.T) {
			b := testBroker(t, testServer(t, 1), func(cfg *Config) { cfg.Audit = c.audit })
			in := listen(t, b, bob, From{})
			lane := b.Lane(LaneConfig{From: "alice", To: bob, Session: "s1", Epoch: 1})
			t.Cleanup(lane.Close)
			store(t, lane, text("before"))
			if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"before"}) {
				t.Fatalf("got %v", got)
			}
			for _, name := range b.Streams() {
				deleteStream(t, b, name)
			}
			if !c.use {
				until(t, "every stream is there again", func() bool { return present(t, b) == len(b.Streams()) })
			}
			store(t, lane, text("after"))
			var got []string
			for !slices.Contains(got, "after") { // maybe behind a gap: what was not read is lost
				got = append(got, bodies(in.next(t))...)
			}
			until(t, "every stream is there again", func() bool { return present(t, b) == len(b.Streams()) })
		})
	}
}

func TestStreamsThatWereChangedOrDeletedAreRightAfterAReconnect(t *testing.T) {
	s := testServer(t, 1)
	b := testBroker(t, s, func(cfg *Config) { cfg.Audit = time.Hour })
	names := b.Streams()
	right := streamConfigOf(t, b, names[0])
	wrong := right
	wrong.MaxAge, wrong.MaxBytes, wrong.MaxMsgsPerSubject, wrong.Duplicates = time.Hour, 1<<20, 3, time.Second
	wrong.MaxMsgs, wrong.MaxMsgSize, wrong.Discard = 5, 1000, jetstream.DiscardOld
	wrong.RePublish, wrong.AllowDirect = nil, false
	if _, err := b.js.UpdateStream(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	deleteStream(t, b, names[1])
	s.StopNode(0)
	until(t, "it is gone", func() bool { return !b.Connected() })
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	until(t, "the deleted stream is there again", func() bool { return present(t, b) == len(names) })
	until(t, "the changed one is as configured", func() bool {
		have := streamConfigOf(t, b, names[0])
		return have.MaxAge == right.MaxAge && have.MaxBytes == right.MaxBytes && have.MaxMsgsPerSubject == right.MaxMsgsPerSubject &&
			have.Duplicates == right.Duplicates && have.MaxMsgs == -1 && have.MaxMsgSize == -1 &&
			have.Discard == right.Discard && have.AllowDirect && have.RePublish != nil && *have.RePublish == *right.RePublish
	})
}

func TestAWatcherLeavesTheLimitsOfAnotherConfigurationAlone(t *testing.T) {
	s := testServer(t, 1)
	audited := testBroker(t, s, func(cfg *Config) { cfg.Audit = 50 * time.Millisecond })
	testBroker(t, s, func(cfg *Config) { cfg.Audit, cfg.MaxRecords = time.Hour, 7 }) // an edge of the next configuration
	names := audited.Streams()
	deleteStream(t, audited, names[1]) // so that a look shows
	until(t, "a look was taken", func() bool { return present(t, audited) == len(names) })
	if c := streamConfigOf(t, audited, names[0]); c.MaxMsgsPerSubject != 7 {
		t.Errorf("a look set MaxMsgsPerSubject back to %d, want 7 of the younger configuration", c.MaxMsgsPerSubject)
	}
}
