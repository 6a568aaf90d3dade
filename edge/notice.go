package edge

import (
	"time"

	"github.com/agora-relay/agora"
)

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
