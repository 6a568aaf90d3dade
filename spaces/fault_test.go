package spaces

import (
	"testing"
	"time"

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

// A roster that can't be read says nothing to anybody, and holds nothing up.
func TestARosterThatCantBeReadIsDropped(t *testing.T) {
	t.Parallel()
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	broken := event(2, `"joined":["b"]`)
	broken.Kind = agora.Roster
	f.hand([]*Event{event(1, ""), newEvent(broken.Message), event(3, "")})
	wantNumbers(t, "a", handed(t, p), []int{1, 3})
}
