package spaces

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestRosterBodyIsAFragmentThatDoorsSplice(t *testing.T) {
	for _, c := range []struct {
		change presence.Change
		want   string
		joined agora.AgentID
	}{
		{presence.Change{Members: []agora.AgentID{"a", "b"}, Joined: "b"}, `"members":["a","b"],"joined":"b","left":null`, "b"},
		{presence.Change{Members: []agora.AgentID{"a", "b", "c"}, Joined: "c"}, `"members":null,"joined":"c","left":null`, "c"},
		{presence.Change{Left: "b"}, `"members":[],"joined":null,"left":"b"`, ""},
		{presence.Change{Members: []agora.AgentID{`<"q">`}, Joined: `<"q">`}, `"members":["<\"q\">"],"joined":"<\"q\">","left":null`, `<"q">`},
	} {
		got := rosterBody(c.change, 2)
		if string(got) != c.want {
			t.Errorf("rosterBody(%v) = %s, want %s", c.change, got, c.want)
		}
		if joined := rosterJoined(got); joined != c.joined {
			t.Errorf("rosterJoined(%s) = %q, want %q", got, joined, c.joined)
		}
	}
}

func TestStatusBody(t *testing.T) {
	got := string(statusBody("x", "online", time.Unix(1234567890, 5)))
	if want := `{"agent":"x","status":"online","timestamp":1234567890}`; got != want {
		t.Errorf("statusBody = %s, want %s", got, want)
	}
}
