package edge

import (
	"errors"

	"github.com/agora-relay/agora/presence"
)

// AddressTaken returns the address that [Actor.Open] was refused, as another agent has it, of whichever tenant, and however it writes it; taken is false for any other error, such as that another
// connection has the id.
func AddressTaken(err error) (address string, taken bool) {
	e, taken := errors.AsType[*presence.AddressError](err)
	if !taken {
		return "", false
	}
	return e.Address, true
}
