package cli

import (
	"errors"
	"testing"

	"github.com/agora-relay/agora"
)

func TestWhoHasNotAnsweredIsSaidToBeAwayWhereItIs(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{agora.Errorf(agora.AgentNotFound, "no agent bob"), "bob is not connected: the request waits in its mailbox"},
		{agora.Errorf(agora.Forbidden, "not for you"), "bob has not answered yet"},
		{errors.New("no answer"), "bob has not answered yet"},
		{nil, "bob has not answered yet"},
	} {
		if got := silence("bob", c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
