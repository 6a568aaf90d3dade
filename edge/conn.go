package edge

import "github.com/agora-relay/agora"

// Conn is a door's connection as its session sees it. No method blocks; all
// may be called from any goroutine, also after the connection has gone.
type Conn interface {
	Wake()         // Pull has something
	Notify(Notice) // write this behind what is queued
	Close(Reason)  // write what is queued, if the socket takes it, then close
}

// Reason says why the node closes a connection. A door says it in words of its protocol.
type Reason struct {
	Cause Cause
	Code  agora.Code // of the error that the agent is told before; empty for none
	Text  string     // one sentence for the agent
}

// Dismissed returns why a connection is closed whose credentials Check refuses.
func Dismissed(err error) Reason {
	e := agora.AsError(err)
	if e.Code == agora.Unavailable {
		return Reason{Cause: Drained, Text: e.Message}
	}
	return Reason{Cause: Expired, Code: e.Code, Text: e.Message}
}
