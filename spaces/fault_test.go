package spaces

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestFaultsAreToldAsAgentsKnowThem(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]agora.Code{
		presence.ErrFull: agora.SpaceFull, presence.ErrNoSpace: agora.SpaceNotFound, presence.ErrDeposed: agora.Unavailable,
	} {
		if e := agora.AsError(fault("room", err)); e.Code != want {
			t.Errorf("%v is told as %v, want %s", err, e, want)
		}
	}
}

// Whatever asks presence says so when that is not there.
func TestWithoutPresenceAHubIsUnavailable(t *testing.T) {
	t.Parallel()
	e := edges(t, presence.Config{}, Config{})[0]
	c := e.claim(t, "a")
	e.store.Close()
	ctx := t.Context()
	for what, f := range map[string]func() error{
		"List":   func() error { _, err := e.List(ctx, e.tenant); return err },
		"Exists": func() error { return e.Exists(ctx, e.tenant, "room") },
		"Create": func() error { return e.Create(ctx, e.tenant, "room") },
		"Join":   func() error { _, _, err := e.Join(ctx, c, "room", Where{}, func() {}); return err },
		"Leave":  func() error { return e.Leave(ctx, c, "room") },
	} {
		if err := f(); err == nil || agora.AsError(err).Code != agora.Unavailable {
			t.Errorf("%s = %v, want that it can't be told", what, err)
		}
	}
}

// A roster that a newer edge has written in a way unknown here is passed on as it is.
func TestARosterThatCantBeReadNamesNobody(t *testing.T) {
	t.Parallel()
	if id := rosterJoined([]byte(`"joined":["a"]`)); id != "" {
		t.Errorf("it names %q", id)
	}
	if id := rosterJoined([]byte(`"joined":"a"`)); id != "a" {
		t.Errorf("a roster names %q, want a", id)
	}
}
