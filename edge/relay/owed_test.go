package relay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// A stream of which a part was refused for the moment is over to its sender, and its receiver hears so once that can be
// stored. The session's next holder must know of it until then: where the log has lost its parts, nothing else would
// end it for its receiver.
func TestARefusedStreamStaysInPresenceUntilTheLogHasItsEnd(t *testing.T) {
	b := newBench(t)
	room := agora.ToSpace("t", "room")
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	open := func() int {
		t.Helper()
		b.relay.Tick(t.Context())
		in, err := b.store.Operators.Inspect(t.Context(), "t", "alice")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, l := range in.Lanes {
			n += len(l.Open)
		}
		told := 0
		for _, l := range s.Lanes() {
			told += len(l.Open)
		}
		if n != told {
			t.Errorf("presence knows %d open streams, and would be told %d if it lost them", n, told)
		}
		return n
	}
	if err := b.say(s, room, "s", agora.Start); err != nil {
		t.Fatal(err)
	}
	b.stuck.Store(true)
	if err := b.say(s, room, "s", agora.Chunk); err == nil || agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("a part that can't be stored: %v, want UNAVAILABLE", err)
	}
	await.True(t, "the stream is over to its sender", func() bool { _, sends := s.Sends(room, "s"); return !sends })
	if n := open(); n != 1 {
		t.Errorf("before its abort is stored, presence knows %d open streams, want it", n)
	}
	b.stuck.Store(false)
	await.True(t, "presence forgets it once its abort is stored", func() bool { return open() == 0 })
}

// While a start waits for room in the window of its session, presence knows the stream already, and may lose it: it is
// told of it again. Where nothing comes of the start, presence forgets it.
func TestAStreamThatIsAboutToBeginIsKnown(t *testing.T) {
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	room, other := agora.ToSpace("t", "room"), agora.ToSpace("t", "other")
	if err := b.say(s, room, "", agora.Whole); err != nil {
		t.Fatal(err)
	}
	half := make([]byte, 1<<19) // of the window
	b.stop()
	if err := s.Send(t.Context(), agora.Message{Kind: agora.Event, To: other, Body: half}, relay.Options{Asker: relay.AskerFunc(func(relay.Sent) {})}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	go func() {
		m := agora.Message{Kind: agora.Request, Part: agora.Start, To: room, Stream: "s", Body: half, Meta: agora.Meta{Deadline: deadline}}
		refused <- s.Send(ctx, m, relay.Options{Receipts: agora.Stored})
	}()
	known := func() []presence.OpenStream {
		b.relay.Tick(t.Context())
		for _, l := range s.Lanes() {
			if l.To == room {
				return l.Open
			}
		}
		return nil
	}
	await.True(t, "the stream is known", func() bool { return len(known()) == 1 })
	if o := known()[0]; o.Stream != "s" || !o.Deadline.Equal(deadline) || o.Receipts != agora.Stored {
		t.Errorf("known is %+v, want stream s until %v with its receipts", o, deadline)
	}
	stop()
	if err := await.Recv(t, "the start is refused", refused); err == nil {
		t.Error("the start went into a full window")
	}
	await.True(t, "the stream is forgotten", func() bool { return len(known()) == 0 })
}

// What an earlier holder left, and the log says is over, is not counted for ever.
func TestStreamsThatEndedWithAnEarlierHolderMakeRoom(t *testing.T) {
	b := newBench(t)
	room := agora.ToSpace("t", "room")
	first := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	var left []presence.OpenStream
	for _, name := range []string{"a", "b"} {
		for _, part := range []agora.Part{agora.Start, agora.End} {
			if err := b.say(first, room, name, part); err != nil {
				t.Fatal(err)
			}
		}
		left = append(left, presence.OpenStream{Stream: name, Kind: agora.Event})
	}
	first.Close()
	b.limits.Set(admission.Limits{Streams: 2})
	second := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, []presence.Lane{{To: room, Open: left}})
	defer second.Close()
	if err := b.say(second, room, "", agora.Whole); err != nil { // from here on it knows what the log says
		t.Fatal(err)
	}
	for _, name := range []string{"c", "d"} {
		if err := b.say(second, room, name, agora.Start); err != nil {
			t.Errorf("stream %q: %v", name, err)
		}
	}
	if err := b.say(second, room, "e", agora.Start); err == nil || agora.AsError(err).Code != agora.RateLimited {
		t.Errorf("one more than may be open: %v, want RATE_LIMITED", err)
	}
}

// A session moves on right after the start of a stream was refused, before a Tick: presence knows the stream no more
// then. Else the next holder would take it for open where retention has cut the log, and let it begin in its midst.
func TestWhoHasASessionNextKnowsNoStreamThatWasRefused(t *testing.T) {
	b := newBench(t)
	room := agora.ToSpace("t", "room")
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	known := func() (names []string) {
		t.Helper()
		in, err := b.store.Operators.Inspect(t.Context(), "t", "alice")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range in.Lanes {
			for _, o := range l.Open {
				names = append(names, o.Stream)
			}
		}
		slices.Sort(names)
		return names
	}
	for _, name := range []string{"goes on", "ends"} {
		if err := b.say(s, room, name, agora.Start); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.say(s, room, "ends", agora.End); err != nil {
		t.Fatal(err)
	}
	b.stuck.Store(true)
	if err := b.say(s, room, "refused", agora.Start); err == nil || agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("a start that can't be stored: %v, want UNAVAILABLE", err)
	}
	b.stuck.Store(false)
	if got := known(); !slices.Equal(got, []string{"ends", "goes on", "refused"}) {
		t.Fatalf("before a Tick presence knows %q", got)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.CloseRefused(over); err == nil {
		t.Error("it is done though there was no time")
	}
	if err := s.CloseRefused(t.Context()); err != nil {
		t.Error(err)
	}
	if got := known(); !slices.Equal(got, []string{"ends", "goes on"}) {
		t.Errorf("presence knows %q, want the one that goes on, and until a Tick the one whose end may be said again", got)
	}
	if err := b.say(s, room, "goes on", agora.End); err != nil {
		t.Error(err)
	}
}
