package spaces

import (
	"reflect"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestOfALargeSpaceNoMembersAreNamed(t *testing.T) {
	for _, c := range []struct {
		change presence.Change
		want   agora.RosterBody
	}{
		{presence.Change{Members: []agora.AgentID{"a", "b"}, Joined: "b"}, agora.RosterBody{Members: []agora.AgentID{"a", "b"}, Joined: "b"}},
		{presence.Change{Members: []agora.AgentID{"a", "b", "c"}, Joined: "c"}, agora.RosterBody{Joined: "c"}},
		{presence.Change{Members: []agora.AgentID{"a", "and more than fits"}, Joined: "a"}, agora.RosterBody{Joined: "a"}},
		{presence.Change{Left: "b"}, agora.RosterBody{Members: []agora.AgentID{}, Left: "b"}},
	} {
		few := Config{WholeRoster: 2, RosterBytes: 20}
		if got := few.rosterBody(c.change); !reflect.DeepEqual(got, c.want) {
			t.Errorf("rosterBody(%v) = %#v, want %#v", c.change, got, c.want)
		}
	}
}

func TestStatusBody(t *testing.T) {
	got := string(statusBody("x", "online", time.Unix(1234567890, 5)))
	if want := `{"agent":"x","status":"online","timestamp":1234567890}`; got != want {
		t.Errorf("statusBody = %s, want %s", got, want)
	}
}
