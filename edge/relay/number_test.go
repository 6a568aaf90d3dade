package relay_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
)

// Who was refused a number for the moment says all again from the first one without receipt. That may be in its lane still, while presence
// does not know the addressee any more: refused for good the number would not come again, and the lane, where it refuses it later, waits for it.
func TestANumberThatItsLaneHoldsIsNotRefusedForGood(t *testing.T) {
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	b.stop() // so that the lane holds what comes into it
	send := func(kind agora.Kind, n uint64) error {
		m := agora.Message{Kind: kind, To: agora.ToAgent("t", "nobody"), N: n, Body: []byte("x")}
		return s.Send(t.Context(), m, relay.Options{Asker: relay.AskerFunc(func(relay.Sent) {})})
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
