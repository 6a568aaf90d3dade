package relay

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// The end of an earlier request may come behind the start of a later one of its name.
func TestACancelGoesToTheCallWhoseStreamIsOpen(t *testing.T) {
	peer := agora.ToAgent("t", "caller")
	cancel := &agora.Message{Kind: agora.Request, Part: agora.Cancel, To: peer, Stream: "r"}
	for about, cut := range map[string][]string{"the end of the first has come late": {"first"}, "it has not come yet": nil, "another agent's has come": {"session"}} {
		s := new(Sender)
		s.relay, s.cfg.Claim = &Relay{}, &presence.Claim{Tenant: "t"}
		hearsOf(s, "first", "r")
		hearsOf(s, "second", "r")
		for _, name := range cut {
			s.Cut(name, "r")
		}
		if to, err := s.Route(t.Context(), cancel); err != nil || to != agora.ToBox("t", "second", "caller") {
			t.Errorf("%s: the cancel goes to %+v, want the second call", about, to)
		}
	}
}

// An answer under the name of a later request may have ended, which a session that moves learns late.
func TestACancelGoesPastAnAnswerThatIsOver(t *testing.T) {
	peer := agora.ToAgent("t", "caller")
	first, second := agora.ToBox("t", "first", "caller"), agora.ToBox("t", "second", "caller")
	cancel := &agora.Message{Kind: agora.Request, Part: agora.Cancel, To: peer, Stream: "r"}
	for about, c := range map[string]struct {
		before func(*boxes)
		later  bool // another request has come
		want   agora.Address
	}{
		"an answer that goes on":             {func(b *boxes) { b.answer(first, "r") }, true, first},
		"one that has ended":                 {func(b *boxes) { b.answer(first, "r"); b.settle(first, agora.End, nil) }, true, second},
		"one that has ended, and no other":   {func(b *boxes) { b.answer(first, "r"); b.settle(first, agora.End, nil) }, false, first},
		"one of an earlier holder":           {func(b *boxes) { b.resume(first, "r") }, true, second},
		"one of an earlier holder, no other": {func(b *boxes) { b.resume(first, "r") }, false, first},
	} {
		s := new(Sender)
		s.relay, s.cfg.Claim = &Relay{}, &presence.Claim{Tenant: "t"}
		c.before(s.known())
		if c.later {
			hearsOf(s, "second", "r")
		}
		if to, err := s.Route(t.Context(), cancel); err != nil || to != c.want {
			t.Errorf("%s: the cancel goes to %+v, want %+v", about, to, c.want)
		}
	}
}

// A call is over before its answer has begun, or behind that: a stream of the answer's name goes to the mailbox of who
// asked then, all of it. In the box its parts would lack their start: they would be refused for ever where the box's
// lane waits for the start's number.
func TestPartsGoWhereTheirStartWent(t *testing.T) {
	peer, at := agora.ToAgent("t", "caller"), agora.ToBox("t", "first", "caller")
	for about, c := range map[string]struct {
		over func(*Sender)
		then uint64 // number of the start behind that
	}{
		"its start is refused for the moment, and nobody waits any more": {func(s *Sender) {
			s.boxed(at, agora.Start, agora.Errorf(agora.Unavailable, "the log is away"))
			s.Heard(&agora.Message{Kind: agora.Control, Part: agora.Abort, From: peer.Agent, Meta: agora.Meta{Call: "first"}}, false)
		}, 1},
		"it has come to its end, and another begins": {func(s *Sender) { s.boxed(at, agora.End, nil) }, 4},
	} {
		s := new(Sender)
		s.relay, s.cfg.Claim = &Relay{}, &presence.Claim{Tenant: "t"}
		hearsOf(s, "first", "")
		say := func(part agora.Part, n uint64, want agora.Address) {
			t.Helper()
			m := agora.Message{Kind: agora.Reply, Part: part, To: peer, Stream: "s", N: n}
			if part == agora.Start {
				m.Meta.Parent = "r"
			}
			if to, err := s.Route(t.Context(), &m); err != nil || to != want {
				t.Errorf("%s: part %d goes to %+v, want %+v", about, part, to, want)
			}
		}
		for k, part := range []agora.Part{agora.Start, agora.Chunk, agora.End} {
			say(part, uint64(k+1), at)
		}
		c.over(s)
		for k, part := range []agora.Part{agora.Start, agora.Chunk, agora.End} {
			say(part, c.then+uint64(k), peer)
		}
		if to := s.boxOf(peer, "s"); to != peer {
			t.Errorf("%s: the stream is open to %+v, want %+v", about, to, peer)
		}
	}
}

// A start that was refused for the moment is the box's answer again once it has come again: nothing else goes there
// then.
func TestAnAnswerThatComesAgainIsTheOnlyOne(t *testing.T) {
	peer, at := agora.ToAgent("t", "caller"), agora.ToBox("t", "first", "caller")
	s := new(Sender)
	s.relay, s.cfg.Claim = &Relay{}, &presence.Claim{Tenant: "t"}
	hearsOf(s, "first", "")
	start := agora.Message{Kind: agora.Reply, Part: agora.Start, To: peer, Stream: "s", N: 1, Meta: agora.Meta{Parent: "r"}}
	for about := range 2 {
		if to, err := s.Route(t.Context(), &start); err != nil || to != at {
			t.Fatalf("saying %d goes to %+v, %v, want %+v", about+1, to, err, at)
		}
		if about == 0 {
			s.boxed(at, agora.Start, agora.Errorf(agora.Unavailable, "the log is away"))
		}
	}
	other := agora.Message{Kind: agora.Reply, To: peer, N: 2, Meta: agora.Meta{Parent: "r"}}
	if to, err := s.Route(t.Context(), &other); err != nil || to != peer {
		t.Errorf("a second answer goes to %+v, %v, want %+v", to, err, peer)
	}
}

// An answer that an earlier holder began may have been given up unheard, as any other: presence is asked before its
// start goes into the box again.
func TestAStartThatComesAgainIsDoubtedAsAnyAnswer(t *testing.T) {
	peer, at := agora.ToAgent("t", "caller"), agora.ToBox("t", "first", "caller")
	b := newBoxes()
	b.resume(at, "s")
	start := &agora.Message{Kind: agora.Reply, Part: agora.Start, To: peer, Stream: "s", N: 1}
	b.settle(at, agora.Start, agora.Errorf(agora.Unavailable, "the log is away"))
	if x := b.unsure(start); x != nil {
		t.Errorf("box %+v is in doubt, and nothing was missed", x.at)
	}
	b.missed()
	if x := b.unsure(start); x == nil || x.at != at {
		t.Errorf("box %+v is in doubt, want %+v", x, at)
	}
}

// answer begins the answer to a request that is called like its stream.
func (b *boxes) answer(to agora.Address, stream string) {
	b.add(to.Peer(), stream, to.Space, "")
	b.route(&agora.Message{Kind: agora.Reply, Part: agora.Start, To: to.Peer(), Stream: stream})
}

// hearsOf has a sender hear of the request of a call, "r" of the caller, which is a stream where that has a name.
func hearsOf(s *Sender, box, stream string) {
	m := agora.Message{Kind: agora.Request, From: "caller", ID: "r", Stream: stream, Meta: agora.Meta{Call: box}}
	if stream != "" {
		m.Part = agora.Start
	}
	s.Heard(&m, false)
}
