package relay_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
)

// Who was refused a number for the moment says all again from the first one without receipt. That may be in its lane
// still, while presence does not know the addressee any more: refused permanently the number would not come again, and
// the lane, where it refuses it later, waits for it.
func TestANumberThatItsLaneHoldsIsNotRefusedForGood(t *testing.T) {
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	b.stop() // so that the lane holds what comes into it
	send := func(kind agora.Kind, n uint64) error {
		m := agora.Message{Kind: kind, To: agora.ToAgent("t", "nobody"), N: n, Body: []byte("x")}
		err := s.Send(t.Context(), m, relay.Options{Asker: relay.AskerFunc(func(relay.Sent) {})})
		if err != nil {
			return s.Refuse(&m, err, true, false)
		}
		return nil
	}
	if err := send(agora.Control, 1); err != nil { // nobody asks whether its addressee is there
		t.Fatal(err)
	}
	if err := send(agora.Request, 1); agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("the number that the lane holds: %v, want UNAVAILABLE", err)
	}
	if err := send(agora.Request, 2); agora.AsError(err).Code != agora.AgentNotFound {
		t.Errorf("another: %v, want AGENT_NOT_FOUND", err)
	}
}

// A chunk and the cancel of its stream are refused for the moment, and come again. The chunk stands before the cancel:
// dropped as one behind it, it would have neither a receipt nor an error, and its sender would wait for one.
func TestANumberBeforeACancelIsAnsweredWhenItComesAgain(t *testing.T) {
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	told := make(chan relay.Sent, 8)
	send := func(part agora.Part, n uint64) {
		m := agora.Message{Kind: agora.Request, Part: part, Stream: "s", To: agora.ToAgent("t", "alice"), N: n, Body: []byte("x")}
		if err := s.Send(t.Context(), m, relay.Options{Asker: relay.AskerFunc(func(r relay.Sent) { told <- r })}); err != nil {
			t.Fatal(err)
		}
	}
	send(agora.Start, 1)
	if r := await.Recv(t, "the start is stored", told); r.Err != nil {
		t.Fatal(r.Err)
	}
	b.stop() // so that the lane holds what comes into it
	numbers := []uint64{2, 3, 2}
	for i, part := range []agora.Part{agora.Chunk, agora.Cancel, agora.Chunk} {
		send(part, numbers[i])
	}
	s.Close() // which answers what is held
	for _, n := range numbers {
		if r := await.Recv(t, "each is answered", told); r.N != n || r.Err == nil {
			t.Errorf("answered: number %d, %v; want %d refused", r.N, r.Err, n)
		}
	}
}
