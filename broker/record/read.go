package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/agora-relay/agora"
)

// Reader decodes records. It keeps the names it saw last, so that those which repeat,
// as they do in a stream, are not allocated again. Its bodies and heads are slices of what it reads.
type Reader struct {
	b       []byte
	bad     bool
	flags   uint64 // those that the record's version has
	last    string // the stream of the part before
	session string
	from    string
	stream  string
	media   string
}

// Open reads what comes before the parts, and how many there are. Part then reads one each.
func (r *Reader) Open(b []byte) (o Origin, parts int, err error) {
	if len(b) == 0 {
		return Origin{}, 0, ErrBroken
	}
	switch b[0] {
	case version1:
		r.flags = flags1
	case version2:
		r.flags = flags2
	case version3:
		r.flags = allFlags
	default:
		return Origin{}, 0, fmt.Errorf("%w: %d", ErrVersion, b[0])
	}
	if len(b) < 2 {
		return Origin{}, 0, ErrBroken
	}
	r.b, r.bad, r.last = b[2:], false, ""
	o.Epoch = r.uvarint()
	at := r.uvarint()
	r.string(&r.session)
	r.string(&r.from)
	if r.bad || at > math.MaxInt64 {
		return Origin{}, 0, ErrBroken
	}
	o.ValidAt, o.Session, o.From = int64(at), r.session, agora.AgentID(r.from)
	return o, int(b[1]) + 1, nil
}

// Part reads the next part into m, which is empty but for what the record's origin says.
func (r *Reader) Part(m *agora.Message) error {
	if len(r.b) < 2 {
		return ErrBroken
	}
	m.Kind, m.Part, r.b = agora.Kind(r.b[0]), agora.Part(r.b[1]), r.b[2:]
	f := r.uvarint()
	r.bad = r.bad || f&^r.flags != 0
	if f&hasN != 0 {
		m.N = r.uvarint()
	}
	switch {
	case f&hasStream != 0:
		m.Stream = r.string(&r.stream)
	case f&sameStream != 0:
		m.Stream = r.last
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
		return ErrBroken
	}
	r.last = m.Stream
	return nil
}

// Release lets go of the record that was read, and keeps the names.
func (r *Reader) Release() { r.b = nil }

func (r *Reader) meta(m *agora.Meta, f uint64) {
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

func (r *Reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *Reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes returns the next counted bytes, of the record's own memory; never nil.
func (r *Reader) bytes() []byte {
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
func (r *Reader) atMost(max int) []byte {
	v := r.bytes()
	r.bad = r.bad || len(v) > max
	return v
}

// string returns the next counted bytes as a string: *kept when they are the same, else they become *kept.
func (r *Reader) string(kept *string) string {
	if v := r.bytes(); string(v) != *kept {
		*kept = string(v)
	}
	return *kept
}
