package record

import (
	"encoding/binary"

	"github.com/agora-relay/agora"
)

// Builder makes records, one at a time. The zero value is ready for Begin.
type Builder struct {
	b     []byte
	parts int
	last  string // the stream of the last part
}

// Begin begins a record in the memory of the one before it.
func (w *Builder) Begin(o Origin) {
	b := append(w.b[:0], version1, 0)
	b = binary.AppendUvarint(b, o.Epoch)
	b = binary.AppendUvarint(b, uint64(o.ValidAt))
	b = appendString(b, o.Session)
	w.b, w.parts, w.last = appendString(b, string(o.From)), 0, ""
}

// Add adds a part, of which there may be MaxParts. It raises the record's version where the part needs that.
func (w *Builder) Add(m *agora.Message) {
	b, f := w.b, flagsOf(m, w.last)
	b[1] = byte(w.parts)
	w.parts++
	w.last = m.Stream
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
	w.b = b
}

// Parts returns how many parts the record has so far.
func (w *Builder) Parts() int { return w.parts }

// Bytes returns the record as far as it is made. It is the Builder's until Begin is called again.
func (w *Builder) Bytes() []byte { return w.b }

// Of returns the record of some parts, in memory of their size.
func Of(o Origin, parts ...agora.Message) []byte {
	size := OriginSize(o)
	for i := range parts {
		size += SizeOf(&parts[i])
	}
	w := Builder{b: make([]byte, 0, size)}
	w.Begin(o)
	for i := range parts {
		w.Add(&parts[i])
	}
	return w.b
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

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
