package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/agora-relay/agora"
)

// A record is what one JetStream message holds: a version, the number of parts
// less one, then epoch, valid-at, session and sender once, then the parts. A part is kind,
// part, flags, and what the flags say is there. Numbers are uvarints; strings and bodies
// have their length before them. Names that repeat from part to part are a flag.
//
// A record is of the first version that has all the flags of its parts, so that whoever
// knows no later one reads what it can understand, and nothing else. A new flag comes with a new version.

const (
	version1 = 1                   // flags up to flags1
	version2 = 2                   // up to flags2
	version3 = 3                   // all flags
	maxParts = 1 << agora.SeqShift // in a record: the position of a part has that many bits
)

// errVersion means a record of a version that this edge does not know.
var errVersion = errors.New("record of an unknown version")

// errRecord means bytes that are no record.
var errRecord = errors.New("broken record")

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

// origin is what all parts of a record share.
type origin struct {
	session string
	epoch   uint64
	validAt int64 // wall time of the edge's last good lease renewal, Unix milliseconds
	from    agora.AgentID
}

// partRoom is more than a part takes beside its strings and its body.
const partRoom = 3 + 8*binary.MaxVarintLen64

// sizeOf returns an upper bound of what m takes in a record.
func sizeOf(m *agora.Message) int {
	return partRoom + len(m.Body) + len(m.Stream) + len(m.ID) + len(spelt(m.Media)) + sizeOfMeta(&m.Meta)
}

func sizeOfMeta(m *agora.Meta) int {
	size := len(m.Trace) + len(m.Parent)
	if m.Call != "" || m.Head != nil || m.Request != "" {
		size += 4*binary.MaxVarintLen64 + len(m.Call) + len(m.Dialect) + len(m.Head) + len(m.Request)
	}
	return size
}

// overlong returns an error where m has more than its bounds allow.
func overlong(m *agora.Meta) *agora.Error {
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

// originRoom returns an upper bound of what o takes in a record.
func originRoom(o origin) int {
	return 2 + 4*binary.MaxVarintLen64 + len(o.session) + len(o.from)
}

// appendOrigin begins a record; the parts are appended after it and counted by setCount.
func appendOrigin(b []byte, o origin) []byte {
	b = append(b, version1, 0)
	b = binary.AppendUvarint(b, o.epoch)
	b = binary.AppendUvarint(b, uint64(o.validAt))
	b = appendString(b, o.session)
	return appendString(b, string(o.from))
}

// setCount writes how many parts the record b holds, 1 to maxParts.
func setCount(b []byte, n int) { b[1] = byte(n - 1) }

// countOf returns how many parts a record holds, without decoding it; 1 for what is none.
func countOf(b []byte) int {
	if len(b) < 2 || !isKnown(b[0]) {
		return 1
	}
	return int(b[1]) + 1
}

func isKnown(version byte) bool { return version >= version1 && version <= version3 }

// appendPart appends m to the record b, and raises its version where m needs that; last is the stream of the part before it.
func appendPart(b []byte, m *agora.Message, last string) []byte {
	f := flagsOf(m, last)
	switch {
	case f > flags2:
		b[0] = version3
	case f > flags1 || f&hasMedia != 0: // who knows no other version takes every body for JSON
		b[0] = max(b[0], version2)
	}
	b = append(b, byte(m.Kind), byte(m.Part))
	b = binary.AppendUvarint(b, f)
	if f&hasN != 0 {
		b = binary.AppendUvarint(b, m.N)
	}
	if f&hasStream != 0 {
		b = appendString(b, m.Stream)
	}
	if f&hasIndex != 0 {
		b = binary.AppendUvarint(b, uint64(m.Index))
	}
	if f&hasID != 0 {
		b = appendString(b, m.ID)
	}
	if f&hasMedia != 0 {
		b = appendString(b, m.Media)
	}
	if f&aside != 0 {
		b = appendMeta(b, m, f)
	}
	if f&hasBody != 0 {
		b = binary.AppendUvarint(b, uint64(len(m.Body)))
		b = append(b, m.Body...)
	}
	return b
}

func appendMeta(b []byte, m *agora.Message, f uint64) []byte {
	if f&hasTrace != 0 {
		b = appendString(b, m.Meta.Trace)
	}
	if f&hasParent != 0 {
		b = appendString(b, m.Meta.Parent)
	}
	if f&hasHops != 0 {
		b = append(b, m.Meta.Hops)
	}
	if f&hasDeadline != 0 {
		b = binary.AppendUvarint(b, uint64(m.Meta.Deadline.UnixMilli()))
	}
	if f&hasReceipts != 0 {
		b = append(b, byte(m.Meta.Receipts))
	}
	if f&hasCall != 0 {
		b = appendString(b, m.Meta.Call)
	}
	if f&hasHead != 0 {
		b = appendString(b, m.Meta.Dialect)
		b = binary.AppendUvarint(b, uint64(len(m.Meta.Head)))
		b = append(b, m.Meta.Head...)
	}
	if f&hasRequest != 0 {
		b = appendString(b, m.Meta.Request)
	}
	return b
}

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

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// reader decodes records. It keeps the names it saw last, so that those which repeat,
// as they do in a stream, are not allocated anew. Its bodies and heads are slices of what it reads.
type reader struct {
	b       []byte
	bad     bool
	version byte
	session string
	from    string
	stream  string
	media   string
}

// open reads what comes before the parts, and how many there are. r.part then reads one each.
func (r *reader) open(b []byte) (o origin, parts int, err error) {
	if len(b) > 0 && !isKnown(b[0]) {
		return origin{}, 0, fmt.Errorf("%w: %d", errVersion, b[0])
	}
	if len(b) < 2 {
		return origin{}, 0, errRecord
	}
	r.b, r.bad, r.version = b[2:], false, b[0]
	o.epoch = r.uvarint()
	at := r.uvarint()
	r.string(&r.session)
	r.string(&r.from)
	if r.bad || at > math.MaxInt64 {
		return origin{}, 0, errRecord
	}
	o.validAt, o.session, o.from = int64(at), r.session, agora.AgentID(r.from)
	return o, int(b[1]) + 1, nil
}

// part reads the next part into m, which is empty but for what the record's origin says. last
// is the stream of the part before it.
func (r *reader) part(m *agora.Message, last string) error {
	m.Kind, m.Part = agora.Kind(r.byte()), agora.Part(r.byte())
	f := r.uvarint()
	r.bad = r.bad || f&^r.flags() != 0
	if f&hasN != 0 {
		m.N = r.uvarint()
	}
	switch {
	case f&hasStream != 0:
		m.Stream = r.string(&r.stream)
	case f&sameStream != 0:
		m.Stream = last
	}
	if f&hasIndex != 0 {
		i := r.uvarint()
		r.bad = r.bad || i > math.MaxUint32
		m.Indexed, m.Index = true, uint32(i)
	}
	if f&hasID != 0 {
		m.ID = string(r.bytes())
	}
	switch f & (hasMedia | isText | isOurs) {
	case 0: // JSON
	case hasMedia:
		m.Media = r.string(&r.media)
	case isText:
		m.Media = agora.MediaText
	case isOurs:
		m.Media = agora.MediaAgora
	default:
		r.bad = true
	}
	m.Again = f&isAgain != 0
	if f&aside != 0 {
		r.meta(&m.Meta, f)
	}
	if f&hasBody != 0 {
		m.Body = r.bytes()
	}
	if r.bad {
		return errRecord
	}
	return nil
}

// flags returns those that the record's version has.
func (r *reader) flags() uint64 {
	switch r.version {
	case version1:
		return flags1
	case version2:
		return flags2
	}
	return allFlags
}

func (r *reader) meta(m *agora.Meta, f uint64) {
	if f&hasTrace != 0 {
		m.Trace = string(r.bytes())
	}
	if f&hasParent != 0 {
		m.Parent = string(r.bytes())
	}
	if f&hasHops != 0 {
		m.Hops = r.byte()
	}
	if f&hasDeadline != 0 {
		ms := r.uvarint()
		r.bad = r.bad || ms > math.MaxInt64
		m.Deadline = time.UnixMilli(int64(ms))
	}
	if f&hasReceipts != 0 {
		m.Receipts = agora.Receipts(r.byte())
	}
	if f&hasCall != 0 {
		m.Call = string(r.atMost(agora.MaxCall))
	}
	if f&hasHead != 0 {
		m.Dialect = string(r.atMost(agora.MaxDialect))
		m.Head = r.atMost(agora.MaxHead)
	}
	if f&hasRequest != 0 {
		m.Request = string(r.atMost(agora.MaxRequest))
	}
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes returns the next counted bytes, of the record's own memory; never nil.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
	}
	if r.bad {
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// atMost is bytes, of which there may be no more than max.
func (r *reader) atMost(max int) []byte {
	v := r.bytes()
	r.bad = r.bad || len(v) > max
	return v
}

// string returns the next counted bytes as a string: *kept when they are the same, else they become *kept.
func (r *reader) string(kept *string) string {
	if v := r.bytes(); string(v) != *kept {
		*kept = string(v)
	}
	return *kept
}
