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
