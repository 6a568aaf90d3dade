// Package record is the form of what the log stores: records of parts, the mark of a purge, and the fence of a lane.
//
// A record is what one JetStream message holds: a version, the number of parts
// less one, then epoch, valid-at, session and sender once, then the parts. A part is kind,
// part, flags, and what the flags say is there. Numbers are uvarints; strings and bodies
// have their length before them. Names that repeat from part to part are a flag.
//
// A record is of the first version that has all the flags of its parts, so that a reader that
// knows no later one reads what it can understand, and nothing else. A new flag comes with a new version.
package record

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/agora-relay/agora"
)

const (
	version1 = 1 // flags up to flags1
	version2 = 2 // up to flags2
	version3 = 3 // all flags
)

// MaxParts is how many parts a record holds at most: the position of a part has that many bits.
const MaxParts = 1 << agora.SeqShift

// ErrVersion means a record of a version that this edge does not know.
var ErrVersion = errors.New("record of an unknown version")

// ErrBroken means bytes that are no record.
var ErrBroken = errors.New("broken record")

const (
	hasN = 1 << iota
	hasStream
	sameStream
	hasIndex
	hasID
	hasMedia
	hasBody
	isAgain
	hasTrace
	hasParent
	hasHops
	hasDeadline
	hasReceipts
	isText // its media type is agora.MediaText; from here on of version 2
	isOurs // its media type is agora.MediaAgora
	hasCall
	hasHead    // and whose it is
	hasRequest // from here on of version 3

	flags1   = isText - 1
	flags2   = hasRequest - 1
	allFlags = hasRequest<<1 - 1
)

// aside are the flags of what few parts have.
const aside = hasTrace | hasParent | hasHops | hasDeadline | hasReceipts | hasCall | hasHead | hasRequest

// Origin is what all parts of a record share: who sent it.
type Origin struct {
	Session string
	Epoch   uint64
	ValidAt int64 // wall time of the edge's last good lease renewal, Unix milliseconds
	From    agora.AgentID
}

// partRoom is more than a part takes beside its strings and its body.
const partRoom = 3 + 8*binary.MaxVarintLen64

// SizeOf returns an upper bound of what m takes in a record.
func SizeOf(m *agora.Message) int {
	size := partRoom + len(m.Body) + len(m.Stream) + len(m.ID) + len(m.Meta.Trace) + len(m.Meta.Parent)
	if m.Media != "" && mediaFlag(m.Media) == hasMedia {
		size += len(m.Media)
	}
	if m.Meta.Call != "" || m.Meta.Head != nil || m.Meta.Request != "" {
		size += 4*binary.MaxVarintLen64 + len(m.Meta.Call) + len(m.Meta.Dialect) + len(m.Meta.Head) + len(m.Meta.Request)
	}
	return size
}

// CheckMeta returns an error where m has more than its bounds allow.
func CheckMeta(m *agora.Meta) *agora.Error {
	switch {
	case len(m.Request) > agora.MaxRequest:
		return agora.Errorf(agora.InvalidRequest, "the request's name has more than %d bytes", agora.MaxRequest)
	case len(m.Call) > agora.MaxCall:
		return agora.Errorf(agora.InvalidRequest, "the name of the message's call has more than %d bytes", agora.MaxCall)
	case len(m.Dialect) > agora.MaxDialect:
		return agora.Errorf(agora.InvalidRequest, "the name of the message's dialect has more than %d bytes", agora.MaxDialect)
	case len(m.Head) > agora.MaxHead:
		return agora.Errorf(agora.MessageTooLarge, "the message's head has more than %d bytes", agora.MaxHead)
	}
	return nil
}

// OriginSize returns an upper bound of what o takes in a record.
func OriginSize(o Origin) int {
	return 2 + 4*binary.MaxVarintLen64 + len(o.Session) + len(o.From)
}

// Count returns how many parts a record holds, without decoding it; 1 for what is none.
func Count(b []byte) int {
	if len(b) < 2 || b[0] < version1 || b[0] > version3 {
		return 1
	}
	return int(b[1]) + 1
}

// flagsOf returns the flags of a part; last is the stream of the part before it.
func flagsOf(m *agora.Message, last string) uint64 {
	a := &m.Meta
	return when(m.N != 0, hasN) |
		when(m.Stream != "" && m.Stream != last, hasStream) | when(m.Stream != "" && m.Stream == last, sameStream) |
		when(m.Indexed, hasIndex) | when(m.ID != "", hasID) | when(m.Media != "", mediaFlag(m.Media)) | when(m.Body != nil, hasBody) | when(m.Again, isAgain) |
		when(a.Trace != "", hasTrace) | when(a.Parent != "", hasParent) | when(a.Hops != 0, hasHops) |
		when(!a.Deadline.IsZero() && a.Deadline.UnixMilli() > 0, hasDeadline) | when(a.Receipts != 0, hasReceipts) |
		when(a.Call != "", hasCall) | when(a.Head != nil, hasHead) | when(a.Request != "", hasRequest)
}

func when(is bool, flag uint64) uint64 {
	if is {
		return flag
	}
	return 0
}

// mediaFlag returns the flag of a media type: its own, or that its name is there.
func mediaFlag(media string) uint64 {
	switch media {
	case agora.MediaText:
		return isText
	case agora.MediaAgora:
		return isOurs
	}
	return hasMedia
}

const (
	VoidAfter  = 60 * time.Second // a record stored later than this after its valid-at is no message
	DoubtAfter = 45 * time.Second // an acknowledgement later than this after it proves nothing: clocks may be apart
)

// IsVoid reports whether a record was stored so late that its sender's lease may have been
// another's by then, and the duplicate table and the fence forgotten. Nobody reads such a record.
func (o Origin) IsVoid(at time.Time) bool {
	return at.Sub(time.UnixMilli(o.ValidAt)) > VoidAfter
}

// A mark is a record of one part of Kind Gap and of no session, which a purge leaves: everything before it was dropped.
// Its N is the position of the last part that was.

// Mark reads a mark, and returns the position up to which everything was dropped.
func Mark(body []byte) (upTo uint64, is bool) {
	if Count(body) != 1 {
		return 0, false
	}
	var r Reader
	o, _, err := r.Open(body)
	if err != nil || o.Session != "" || o.From != "" {
		return 0, false
	}
	var m agora.Message
	if r.Part(&m) != nil || m.Kind != agora.Gap {
		return 0, false
	}
	return m.N, true
}

// A fence is what stands on the subject of a lane's fence: a version, and the epoch of the lane's holder.

const fenceVersion = 1

// Fence returns the fence of a holder's epoch.
func Fence(epoch uint64) []byte { return binary.AppendUvarint([]byte{fenceVersion}, epoch) }

// ParseFence returns the epoch of a fence. It fails with errVersion or errRecord.
func ParseFence(b []byte) (epoch uint64, err error) {
	if len(b) < 2 || b[0] != fenceVersion {
		return 0, ErrVersion
	}
	epoch, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return 0, ErrBroken
	}
	return epoch, nil
}
