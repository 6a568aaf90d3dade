package edge

import (
	"context"
)

// endings says why a session is ended that another edge asks this one to end.
var endings = map[string]Reason{
	"kick":  {Cause: Kicked, Text: "an operator has ended the session"},
	"evict": {Cause: TakenOver, Text: "another agent answers at its address"},
	"end":   {Cause: Goodbye, Text: "its agent has ended the session by another edge"},
}

// endHere closes the session's connection for good, and settles it.
func (s leaver) endHere(ctx context.Context, why Reason) {
	s.life.leaves(why.Cause)
	s.conn.Close(why)
	if s.stop(true) {
		s.detach(ctx)
	}
}
