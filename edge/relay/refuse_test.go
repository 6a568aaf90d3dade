package relay_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
)

// said is a sender whose messages are awaited, of a stream "s" to a room.
type said struct {
	*relay.Sender
	t    *testing.T
	told chan relay.Sent
}

func newSaid(t *testing.T) *said {
	b, told := newBench(t), make(chan relay.Sent, 8)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim, Asker: relay.AskerFunc(func(r relay.Sent) { told <- r })}, nil)
	t.Cleanup(s.Close)
	return &said{s, t, told}
}

func (s *said) part(part agora.Part) *agora.Message {
	return &agora.Message{Kind: agora.Event, Part: part, To: agora.ToSpace("t", "room"), Stream: "s", Body: []byte(`1`)}
}

func (s *said) stores(part agora.Part) {
	s.t.Helper()
	if err := s.Send(s.t.Context(), *s.part(part), relay.Options{Receipts: agora.Stored, Frame: "f"}); err != nil {
		s.t.Fatal(err)
	}
	if r := await.Recv(s.t, "an answer", s.told); r.Err != nil {
		s.t.Fatal(r.Err)
	}
}

var forbidden = agora.Errorf(agora.Forbidden, "no")

// A second start under the name of a stream that is open is another stream: the one that is open continues.
func TestARefusedStartDoesNotSilenceTheStreamThatIsOpen(t *testing.T) {
	s := newSaid(t)
	s.stores(agora.Start)
	if err := s.Refuse(s.part(agora.Start), forbidden, true, false); err == nil {
		t.Error("a start that is refused has no answer")
	}
	s.stores(agora.Chunk)
	s.stores(agora.End)
}

// Of a stream that was refused each part needs no answer of its own, but for a caller that waits for one.
func TestARefusedStreamIsAnsweredOnceAndToEachWhoWaits(t *testing.T) {
	s := newSaid(t)
	for _, step := range []struct {
		part  agora.Part
		waits bool
		want  bool
	}{
		{agora.Start, false, true}, {agora.Chunk, false, false}, {agora.Chunk, true, true}, {agora.Chunk, false, false},
		{agora.Cancel, false, true}, {agora.End, false, false}, {agora.End, false, true},
	} {
		if err := s.Refuse(s.part(step.part), forbidden, true, step.waits); (err != nil) != step.want {
			t.Errorf("part %v of a refused stream, where a caller waits is %t: %v", step.part, step.waits, err)
		}
	}
}

// A whole answer that ends its stream, and is refused, is not stored: said again it is not taken for that.
func TestAnAnswerThatIsRefusedIsNotKnownAsStored(t *testing.T) {
	s := newSaid(t)
	peer := agora.ToSpace("t", "room")
	s.stores(agora.Start)
	answer := func() *agora.Message {
		return &agora.Message{Kind: agora.Event, To: peer, ID: "a", Meta: agora.Meta{Parent: "s"}, Body: []byte(`1`)}
	}
	m := answer()
	if how := s.Continue(m, true); how != relay.Goes || m.Part != agora.End {
		t.Fatalf("a whole answer goes on as %v, part %v; want it to end the open stream", how, m.Part)
	}
	_ = s.Refuse(m, forbidden, true, true)
	await.True(t, "the stream is aborted", func() bool { _, open := s.Sends(peer, "s"); return !open })
	m = answer()
	m.Kind = agora.Reply
	if how := s.Continue(m, true); how == relay.Known {
		t.Error("an answer that was refused is known as stored")
	}
}

// A number that the lane of a box waits for is used up once it is refused permanently: the numbers behind it are taken.
func TestALaneOfABoxWaitsForNoNumberThatIsRefusedForGood(t *testing.T) {
	b, told := newBench(t), make(chan relay.Sent, 8)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim, Asker: relay.AskerFunc(func(r relay.Sent) { told <- r })}, nil)
	t.Cleanup(s.Close)
	part := func(part agora.Part, n uint64) *agora.Message {
		return &agora.Message{Kind: agora.Request, Part: part, To: agora.ToBox("t", "box", "bob"), Stream: "s", N: n, Body: []byte(`1`)}
	}
	says := func(m *agora.Message) error {
		t.Helper()
		if err := s.Send(t.Context(), *m, relay.Options{}); err != nil {
			t.Fatal(err)
		}
		return await.Recv(t, "an answer", told).Err
	}
	if err := says(part(agora.Start, 1)); err != nil {
		t.Fatal(err)
	}
	b.stuck.Store(true)
	if err := says(part(agora.Chunk, 2)); agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("a part while nothing can be stored: %v", err)
	}
	b.stuck.Store(false)
	if err := s.Refuse(part(agora.Chunk, 2), forbidden, false, false); err == nil {
		t.Error("a part that is refused for good has no answer")
	}
	next := part(agora.Start, 3)
	next.Stream = "next"
	await.True(t, "the number behind it is stored", func() bool { return says(next) == nil })
}
