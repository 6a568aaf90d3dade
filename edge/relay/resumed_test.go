package relay_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// What presence has lost of a session that continues elsewhere stands in the log: a stream whose lane it does not name
// continues. Were its part refused, its sender would give it up, and its receiver never see an end of it.
func TestAStreamOfAnEarlierHolderGoesOnThoughPresenceDoesNotNameItsLane(t *testing.T) {
	b := newBench(t)
	put := func(s *relay.Sender, part agora.Part, n uint64) relay.Sent {
		t.Helper()
		told := make(chan relay.Sent, 1)
		m := agora.Message{Kind: agora.Event, Part: part, To: agora.ToSpace("t", "room"), Stream: "s", N: n, Body: []byte("part")}
		if err := s.Send(t.Context(), m, relay.Options{Asker: relay.AskerFunc(func(r relay.Sent) { told <- r })}); err != nil {
			t.Fatalf("part %d: %v", n, err)
		}
		return await.Recv(t, "an answer", told)
	}
	first := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	if r := put(first, agora.Start, 1); r.Err != nil {
		t.Fatal(r.Err)
	}
	first.Close()
	claim := b.claim
	claim.Resumed = true
	second := b.relay.Sender(relay.SenderConfig{Claim: &claim}, nil)
	defer second.Close()
	if r := put(second, agora.Chunk, 2); r.Err != nil {
		t.Errorf("a part: %v", r.Err)
	}
	if r := put(second, agora.End, 3); r.Err != nil {
		t.Errorf("the end: %v", r.Err)
	}
}

// Anyone who says a part of what never began is told so, and nothing is made for it: its addressee may be anybody's
// invention.
func TestAPartToNobodyMakesNoLane(t *testing.T) {
	b := newBench(t)
	claim := b.claim
	claim.Resumed = true
	s := b.relay.Sender(relay.SenderConfig{Claim: &claim}, nil)
	defer s.Close()
	m := agora.Message{Kind: agora.Request, Part: agora.Chunk, To: agora.ToAgent("t", "nobody"), Stream: "s", N: 1, Body: []byte("part")}
	if err := s.Send(t.Context(), m, relay.Options{}); err == nil || agora.AsError(err).Code != agora.StreamNotFound {
		t.Errorf("a part: %v, want STREAM_NOT_FOUND", err)
	}
	if lanes := s.Lanes(); len(lanes) > 0 {
		t.Errorf("the session has lanes: %v", lanes)
	}
}

// An earlier holder of a session told presence of a stream, and its edge ended before the start was stored. Where the
// next one refuses that start for the moment, and the parts behind it, they come again: an end of what has not begun
// would have the receiver see the stream begin behind it.
func TestAStreamWhoseStartComesAgainIsNotEndedMeanwhile(t *testing.T) {
	b := newBench(t)
	claim, room, hall := b.claim, agora.ToSpace("t", "room"), agora.ToSpace("t", "hall")
	claim.Resumed = true
	known := presence.Lane{To: room}
	for _, name := range []string{"awaited", "refused for good", "not awaited"} {
		known.Open = append(known.Open, presence.OpenStream{Stream: name, Kind: agora.Event, Indexed: true})
	}
	s := b.relay.Sender(relay.SenderConfig{Claim: &claim}, []presence.Lane{known, {To: hall, Open: []presence.OpenStream{{Stream: "forbidden", Kind: agora.Event, Indexed: true}}}})
	defer s.Close()
	sends := func(name string) bool { _, sends := s.Sends(room, name); return sends }
	busy := &agora.Error{Code: agora.Unavailable, Message: "not now", RetryAfter: time.Second}

	b.stuck.Store(true)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Start, To: room, Stream: "awaited", N: 1}, busy, true, false)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Chunk, To: room, Stream: "awaited", N: 2}, busy, true, false)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Start, To: room, Stream: "refused for good", N: 3}, busy, true, false)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Start, To: room, Stream: "refused for good", N: 3}, agora.Errorf(agora.Unauthorized, "no"), true, false)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Chunk, To: room, Stream: "refused for good", N: 4}, busy, true, false)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Start, To: hall, Stream: "forbidden", N: 1}, busy, true, false)
	s.Review(func(to agora.Address, _ agora.Kind) error {
		if to == hall {
			return agora.Errorf(agora.Unauthorized, "no")
		}
		return nil
	}, func(agora.Address, string, error) {})
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Start, To: room, Stream: "not awaited", N: 0}, busy, true, false) // nothing says that it comes again
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Chunk, To: room, Stream: "not awaited", N: 0}, busy, true, false)
	await.True(t, "what nothing more comes of is over", func() bool { _, other := s.Sends(hall, "forbidden"); return !sends("not awaited") && !other })
	if sends("refused for good") {
		t.Error("a stream whose start was refused for good goes on")
	}
	if !sends("awaited") {
		t.Error("a stream whose start comes again was ended")
	}
	b.stuck.Store(false)
	start := agora.Message{Kind: agora.Event, Part: agora.Start, To: room, Stream: "awaited", N: 1, Body: []byte("start")}
	told := make(chan relay.Sent, 1)
	if err := s.Send(t.Context(), start, relay.Options{Asker: relay.AskerFunc(func(r relay.Sent) { told <- r })}); err != nil {
		t.Fatal(err)
	}
	if r := await.Recv(t, "an answer", told); r.Err != nil || r.Again {
		t.Errorf("the start: %+v, want it stored", r)
	}
	b.stuck.Store(true)
	s.Refuse(&agora.Message{Kind: agora.Event, Part: agora.Chunk, To: room, Stream: "awaited", N: 2}, busy, true, false)
	await.True(t, "a stream that has begun is ended by a hole", func() bool { return !sends("awaited") })
}
