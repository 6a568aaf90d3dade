package relay_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
)

// A cancel that is refused for the moment has ended nothing: what was said of the stream before it, and refused with
// it, comes again and is answered.
func TestAPartBeforeACancelThatIsRefusedForTheMomentIsAnswered(t *testing.T) {
	for name, cancels := range map[string]func(s *relay.Sender, to agora.Address, own func()){
		"by its sender": func(_ *relay.Sender, _ agora.Address, own func()) { own() },
		"by its receiver": func(s *relay.Sender, to agora.Address, _ func()) {
			s.Heard(&agora.Message{Kind: agora.Control, Part: agora.Cancel, From: to.Agent, Stream: "s"}, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			to := agora.ToBox("t", "box", "bob") // whom nobody need know
			answers := make(chan relay.Sent, 9)
			s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim, Asker: relay.AskerFunc(func(t relay.Sent) { answers <- t })}, nil)
			defer s.Close()
			s.Heard(&agora.Message{Kind: agora.Request, From: "bob", ID: "s", Meta: agora.Meta{Call: "box"}}, false)
			say := func(part agora.Part, n uint64) {
				t.Helper()
				m := agora.Message{Kind: agora.Reply, Part: part, To: to.Peer(), Stream: "s", N: n, Body: []byte("1"), Meta: agora.Meta{Parent: "s"}}
				if into, err := s.Route(t.Context(), &m); err != nil || into != to {
					t.Fatalf("goes to %+v, %v, want the box", into, err)
				}
				m.To = to
				if err := s.Send(t.Context(), m, relay.Options{Receipts: agora.Stored, Frame: "f"}); err != nil {
					t.Fatal(err)
				}
			}
			answered := func(n uint64) relay.Sent {
				t.Helper()
				for {
					if a := await.Recv(t, "an answer", answers); a.N == n {
						return a
					}
				}
			}
			say(agora.Start, 1)
			if a := answered(1); a.Err != nil {
				t.Fatal(a.Err)
			}
			b.stuck.Store(true)
			cancels(s, to, func() {
				say(agora.Chunk, 2)
				say(agora.Cancel, 3)
				for n := range uint64(2) {
					if a := answered(n + 2); agora.AsError(a.Err).Code != agora.Unavailable {
						t.Fatalf("number %d, while nothing can be stored: %v", n+2, a.Err)
					}
				}
			})
			await.True(t, "the cancel is refused", func() bool { _, open := s.Sends(to, "s"); return !open })
			b.stuck.Store(false)
			say(agora.Chunk, 2)
			answered(2)
		})
	}
}
