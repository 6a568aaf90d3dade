package cli

import (
	"errors"
	"fmt"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// standing tells people how a verb stands with the cluster. The client calls it for one change at a time.
type standing struct {
	tell  func(string)
	agent string // who it is; empty for nobody
	quiet bool   // says nothing while all is well
	hint  string // what to do now, told once; may be empty

	made bool   // there was a connection
	told string // why there is none; empty while there is one
}

// status takes what has changed.
func (s *standing) status(now client.Status) {
	switch {
	case now.Err != nil:
		s.lost(now.Err)
		return
	case !s.made && !s.quiet:
		s.tell(fmt.Sprintf("connected as %s to %s%s", terminal.NameOf(s.agent), now.Edge, s.hint))
	case s.made && now.Resumed:
		s.tell(fmt.Sprintf("connected again%s to %s: nothing is missing", s.as(), now.Edge))
	case s.made:
		s.tell(fmt.Sprintf("connected again%s to %s, in a new session", s.as(), now.Edge))
	}
	s.made, s.told = true, ""
}

// lost tells why there is no connection, once for as long as it stays the same.
func (s *standing) lost(err error) {
	why := exit.Sentence(err)
	switch {
	case why == s.told:
		return
	case errors.Is(err, client.ErrKicked):
		s.tell(why + " (kick): coming back in a new one")
	case s.told == "":
		s.tell("connection lost: " + why + "; trying again")
	default:
		s.tell("no connection yet: " + why + "; trying again")
	}
	s.told = why
}

func (s *standing) as() string {
	if s.agent == "" {
		return ""
	}
	return " as " + terminal.NameOf(s.agent)
}
