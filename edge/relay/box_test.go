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
		s.relay, s.cfg.Claim = &Relay{}, new(presence.Claim)
		s.Asked(peer, "r", "first", "r")
		s.Asked(peer, "r", "second", "r")
		for _, name := range cut {
			s.Cut(name, "r")
		}
		if to := s.Route(t.Context(), cancel); to != agora.ToBox("t", "second", "caller") {
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
		s.relay, s.cfg.Claim = &Relay{}, new(presence.Claim)
		c.before(s.known())
		if c.later {
			s.Asked(peer, "r", "second", "r")
		}
		if to := s.Route(t.Context(), cancel); to != c.want {
			t.Errorf("%s: the cancel goes to %+v, want %+v", about, to, c.want)
		}
	}
}

// answer begins the answer to a request that is called like its stream.
func (b *boxes) answer(to agora.Address, stream string) {
	b.add(to.Peer(), stream, to.Space, "")
	b.route(&agora.Message{Kind: agora.Reply, Part: agora.Start, To: to.Peer(), Stream: stream})
}
