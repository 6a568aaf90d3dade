package ws

import (
	"encoding/binary"
	"unicode/utf8"
)

// opcode is the kind of a WebSocket frame (RFC 6455 section 5.2).
type opcode byte

const (
	opMore   opcode = 0 // a message goes on
	opText   opcode = 1
	opBinary opcode = 2
	opClose  opcode = 8
	opPing   opcode = 9
	opPong   opcode = 10
)

// final marks a frame that is a whole message: this door writes no others.
const final = 0x80

// headRoom is what beginFrame keeps free: the header of all frames but the
// shortest, which are moved back, and the longest, which are moved on.
const headRoom = 4

// maxControl is the largest payload of a control frame.
const maxControl = 125

// beginFrame makes room for a header. The payload is appended next, then
// endFrame is called with the length that dst had before.
func beginFrame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// endFrame writes the header of the unmasked frame whose payload is
// dst[at+headRoom:]. What it writes ends dst.
func endFrame(dst []byte, at int, op opcode) []byte {
	n := len(dst) - at - headRoom
	switch {
	case n <= maxControl:
		copy(dst[at+2:], dst[at+headRoom:])
		dst = dst[:at+2+n]
		dst[at+1] = byte(n)
	case n <= 0xffff:
		dst[at+1] = 126
		binary.BigEndian.PutUint16(dst[at+2:], uint16(n))
	default:
		dst = append(dst, 0, 0, 0, 0, 0, 0)
		copy(dst[at+10:], dst[at+headRoom:at+headRoom+n])
		dst[at+1] = 127
		binary.BigEndian.PutUint64(dst[at+2:], uint64(n))
	}
	dst[at] = final | byte(op)
	return dst
}

// appendControl appends a control frame; what its payload has beyond 125 bytes is cut.
func appendControl(dst []byte, op opcode, payload []byte) []byte {
	at := len(dst)
	return endFrame(append(beginFrame(dst), payload[:min(len(payload), maxControl)]...), at, op)
}

// appendClose appends a close frame. Text that does not fit is cut between two
// characters. Code closeNoStatus stands for none: the frame is empty.
func appendClose(dst []byte, code int, text string) []byte {
	at := len(dst)
	dst = beginFrame(dst)
	if code != closeNoStatus {
		dst = binary.BigEndian.AppendUint16(dst, uint16(code))
		for len(text) > maxControl-2 || !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		dst = append(dst, text...)
	}
	return endFrame(dst, at, opClose)
}
