package loadgen

import (
	"bytes"
	"encoding/binary"

	"github.com/agora-relay/agora/wire"
)

// AppendText appends f as a client's WebSocket frame.
func AppendText(dst []byte, f *wire.Frame) []byte {
	return appendFrame(dst, opText, f.Append(nil))
}

// AppendBytes appends what stands in a text frame as a client's WebSocket frame.
func AppendBytes(dst, text []byte) []byte { return appendFrame(dst, opText, text) }

// appendFrame appends a client's frame, masked with zeros.
func appendFrame(dst []byte, op byte, payload []byte) []byte {
	dst = append(dst, 0x80|op)
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 0x80|127), uint64(n))
	}
	return append(append(dst, 0, 0, 0, 0), payload...)
}

// template is a frame that is sent many times: only its stamps change.
type template struct {
	bytes  []byte
	stamps [][]byte // where they stand in bytes
}

// newTemplate makes a template of a frame; each [blank] in it is a stamp.
func newTemplate(f *wire.Frame) template {
	t := template{bytes: AppendText(nil, f)}
	for rest := t.bytes; ; {
		i := bytes.IndexByte(rest, mark)
		if i < 0 || i+StampSize > len(rest) {
			return t
		}
		t.stamps = append(t.stamps, rest[i:i+StampSize])
		rest = rest[i+StampSize:]
	}
}

// fill writes a stamp wherever there is one.
func (t *template) fill(s stamp) {
	for _, at := range t.stamps {
		s.put(at)
	}
}
