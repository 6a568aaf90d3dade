package relay_test

import (
	"errors"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// Presence that went back to an older copy does not know the claim. It learns of it again, and the part is tried once
// more: taken for one of a stream that was answered for, it would be gone without a word.
func TestAPartThatIsTriedAgainOnceTheClaimIsKnownIsAnswered(t *testing.T) {
	b := newBench(t)
	room := agora.ToSpace("t", "room")
	claim := b.claim
	claim.Epoch++ // not known yet
	s := b.relay.Sender(relay.SenderConfig{Claim: &claim}, []presence.Lane{{To: room, Open: []presence.OpenStream{{Stream: "s", Kind: agora.Event, Indexed: true}}}})
	defer s.Close()
	answered := make(chan relay.Sent, 1)
	part := agora.Message{Kind: agora.Event, Part: agora.Chunk, To: room, Stream: "s", Index: 1, Indexed: true, Body: []byte("more")}
	send := func() error {
		return s.Send(t.Context(), part, relay.Options{Asker: relay.AskerFunc(func(t relay.Sent) { answered <- t })})
	}
	if err := send(); !errors.Is(err, presence.ErrDeposed) {
		t.Fatalf("without the claim: %v", err)
	}
	claim.Epoch--
	if err := send(); err != nil {
		t.Fatalf("with the claim: %v", err)
	}
	await.Recv(t, "somebody is told what became of the part", answered)
}
