package demux

import (
	"cmp"
	"errors"

	"github.com/agora-relay/agora"
)

// ErrCancelled is the cause of the error with which an exchange ends that its peer has cancelled.
var ErrCancelled = errors.New("cancelled by the peer")

var (
	errGap      = agora.Errorf(agora.StreamAborted, "parts of the stream are lost: they grew too old, or too many, before they were read")
	errTooMany  = agora.Errorf(agora.RateLimited, "its reader is too slow, and too many others lag already")
	errTooSlow  = agora.Errorf(agora.RateLimited, "its reader is too slow: more than half of the mailbox has come since")
	errReleased = agora.Errorf(agora.Unavailable, "the exchange is closed")
)

// ending returns the error that a part means which ends a stream, or a request, for other reasons than that all was
// said.
func ending(m *agora.Message) *agora.Error {
	code := cmp.Or(m.AbortBody().Code, agora.StreamAborted)
	switch {
	case m.Part == agora.Cancel && m.Kind == agora.Control && code == agora.MessageTooLarge:
		return agora.Errorf(code, "the receiver takes no frame as large as one of it would come in")
	case m.Part == agora.Cancel, m.Kind == agora.Control && m.Stream == "" && code == agora.StreamAborted: // a request, which nobody waits for any more
		return &agora.Error{Code: agora.StreamAborted, Message: "cancelled by the peer", Cause: ErrCancelled}
	}
	return agora.Errorf(code, "given up by the cluster")
}
