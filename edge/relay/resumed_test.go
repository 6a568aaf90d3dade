package relay_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
)

// What presence has lost of a session that goes on elsewhere stands in the log: a stream whose lane it does not name goes on. Were its part refused, its sender would give it up, and
// its receiver never see an end of it.
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

// Whoever says a part of what never began is told so, and nothing is made for it: its addressee may be anybody's invention.
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
