package edge

import (
	"time"

	"github.com/agora-relay/agora"
)

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

// Cause is why a connection ended; the zero value says that this is not known yet. The names of causes are part of
// metrics and logs.
type Cause uint8

// The causes.
const (
	Goodbye   Cause = iota + 1 // the agent closed the connection on purpose
	Lost                       // the connection broke
	Silent                     // no sign of life
	Stalled                    // its socket took nothing
	TakenOver                  // it continues elsewhere
	Kicked                     // an operator ended it
	Drained                    // it is to connect again: the edge goes away, or has to let go of it
	Shed                       // the edge held too much
	Refused                    // the agent broke the protocol, or may not be who it is any more
	Expired                    // its credentials ended, or were taken back
)

var causes = [...]string{
	Goodbye: "goodbye", Lost: "lost", Silent: "silent", Stalled: "stalled", TakenOver: "taken_over",
	Kicked: "kicked", Drained: "drained", Shed: "shed", Refused: "refused", Expired: "expired",
}

// String returns the name of the cause; empty where it is not known.
func (c Cause) String() string { return causes[c] }

// NoticeKind tells notices apart.
type NoticeKind uint8

// The kinds, and the fields of a Notice that count for each.
const (
	NoticeReceipt    NoticeKind = iota // Tier, and RequestID + Seq, To + N, or To + Stream + Index
	NoticeFault                        // Err; RequestID, To and Stream where they are known
	NoticePublished                    // RequestID, To (the space), Stream (the event id)
	NoticePing                         // Data comes back with the pong; a heartbeat goes with it where At is set
	NoticeHeartbeat                    //
	NoticeReconnect                    // After
	NoticeUnanswered                   // Err: why the answer to a request of the agent's is not given to it; RequestID its name, To who has answered
)

// Notice is what a session tells its agent beside deliveries.
type Notice struct {
	Kind      NoticeKind
	RequestID string         // id of the frame that this is about
	Tier      agora.Receipts // agora.Stored
	Seq       uint64         // position of the stored message
	To        agora.Address
	N         uint64 // of a receipt: everything up to this number is stored; of a fault: the number that was refused
	Stream    string
	Index     uint32 // everything of the stream up to this index is stored
	Err       *agora.Error
	Data      uint64
	After     time.Duration
	At        time.Time // of a heartbeat, by the cluster's clock
}
