package spaces

import (
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// fault returns err, from presence or the broker, as an agent may see it.
func fault(space string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, presence.ErrFull):
		return agora.Errorf(agora.SpaceFull, "Space '%s' is full", space)
	case errors.Is(err, presence.ErrNoSpace):
		return noSpace(space)
	case errors.Is(err, presence.ErrDeposed):
		return &agora.Error{Code: agora.Unavailable, Message: "the session goes on elsewhere", Cause: err}
	}
	return agora.AsError(err)
}

func noSpace(space string) error {
	return agora.Errorf(agora.SpaceNotFound, "Space '%s' does not exist", space)
}

// isMissing tells the error of a space that does not exist.
func isMissing(err error) bool { return errors.Is(err, presence.ErrNoSpace) }
