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
	return partRoom + len(m.Body) + len(m.Stream) + len(m.ID) + len(spelt(m.Media)) + sizeOfMeta(&m.Meta)
}

func sizeOfMeta(m *agora.Meta) int {
	size := len(m.Trace) + len(m.Parent)
	if m.Call != "" || m.Head != nil || m.Request != "" {
		size += 4*binary.MaxVarintLen64 + len(m.Call) + len(m.Dialect) + len(m.Head) + len(m.Request)
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
	if len(b) < 2 || !isKnown(b[0]) {
		return 1
	}
	return int(b[1]) + 1
}

func isKnown(version byte) bool { return version >= version1 && version <= version3 }

func flagsOf(m *agora.Message, last string) (f uint64) {
	set := func(is bool, bit uint64) {
		if is {
			f |= bit
		}
	}
	set(m.N != 0, hasN)
	set(m.Stream != "" && m.Stream != last, hasStream)
	set(m.Stream != "" && m.Stream == last, sameStream)
	set(m.Indexed, hasIndex)
	set(m.ID != "", hasID)
	if m.Media != "" {
		f |= mediaFlag(m.Media)
	}
	set(m.Body != nil, hasBody)
	set(m.Again, isAgain)
	return f | metaFlags(&m.Meta)
}

func metaFlags(m *agora.Meta) (f uint64) {
	set := func(is bool, bit uint64) {
		if is {
			f |= bit
		}
	}
	set(m.Trace != "", hasTrace)
	set(m.Parent != "", hasParent)
	set(m.Hops != 0, hasHops)
	set(!m.Deadline.IsZero() && m.Deadline.UnixMilli() > 0, hasDeadline)
	set(m.Receipts != 0, hasReceipts)
	set(m.Call != "", hasCall)
	set(m.Head != nil, hasHead)
	set(m.Request != "", hasRequest)
	return f
}

func mediaFlag(media string) uint64 {
	switch media {
	case agora.MediaText:
		return isText
	case agora.MediaAgora:
		return isOurs
	}
	return hasMedia
}

// spelt returns a media type that has no flag of its own.
func spelt(media string) string {
	if media != "" && mediaFlag(media) != hasMedia {
		return ""
	}
	return media
}
