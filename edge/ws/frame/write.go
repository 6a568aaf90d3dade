// Package frame is the codec of WebSocket frames (RFC 6455): what an edge writes, whole and without a mask, and what a
// client has masked. It does no handshake and knows nothing of messages.
package frame

import (
	"encoding/binary"
	"unicode/utf8"
)

// Op is the kind of a frame, its opcode (RFC 6455 section 5.2).
type Op byte

const (
	More   Op = 0 // a message continues
	Text   Op = 1
	Binary Op = 2
	Close  Op = 8
	Ping   Op = 9
	Pong   Op = 10
)

// Final marks, in its first byte, a frame that ends its message: all that this package writes do.
const Final = 0x80

// HeadRoom is what Begin keeps free: the header of all frames but the
// shortest, which are moved back, and the longest, which are moved on.
const HeadRoom = 4

// maxControl is the largest payload of a control frame.
const maxControl = 125

// Begin makes room for a header. The payload is appended next, then
// End is called with the length that dst had before.
func Begin(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// End writes the header of the unmasked frame whose payload is
// dst[at+HeadRoom:]. What it writes ends dst.
func End(dst []byte, at int, op Op) []byte {
	n := len(dst) - at - HeadRoom
	switch {
	case n <= maxControl:
		copy(dst[at+2:], dst[at+HeadRoom:])
		dst = dst[:at+2+n]
		dst[at+1] = byte(n)
	case n <= 0xffff:
		dst[at+1] = 126
		binary.BigEndian.PutUint16(dst[at+2:], uint16(n))
	default:
		dst = append(dst, 0, 0, 0, 0, 0, 0)
		copy(dst[at+10:], dst[at+HeadRoom:at+HeadRoom+n])
		dst[at+1] = 127
		binary.BigEndian.PutUint64(dst[at+2:], uint64(n))
	}
	dst[at] = Final | byte(op)
	return dst
}

// AppendControl appends a control frame; what its payload has beyond 125 bytes is cut.
func AppendControl(dst []byte, op Op, payload []byte) []byte {
	at := len(dst)
	return End(append(Begin(dst), payload[:min(len(payload), maxControl)]...), at, op)
}

// AppendClose appends a close frame. Text that does not fit is cut between two
// characters. Code CloseNoStatus stands for none: the frame is empty.
func AppendClose(dst []byte, code int, text string) []byte {
	at := len(dst)
	dst = Begin(dst)
	if code != CloseNoStatus {
		dst = binary.BigEndian.AppendUint16(dst, uint16(code))
		for len(text) > maxControl-2 || !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		dst = append(dst, text...)
	}
	return End(dst, at, Close)
}

// Codes of a close frame (RFC 6455 section 7.4, and the IANA registry).
const (
	CloseNormal   = 1000
	CloseAway     = 1001
	CloseProtocol = 1002
	CloseNoStatus = 1005 // stands for none, and is never sent
	ClosePolicy   = 1008
	CloseTooBig   = 1009
	CloseRestart  = 1012
	CloseTryLater = 1013
)

// CloseCode returns the code that the payload of a peer's close frame has, [CloseNoStatus] where it is empty. The error
// is a [Breach].
func CloseCode(payload []byte) (int, error) {
	if len(payload) == 0 {
		return CloseNoStatus, nil
	}
	if len(payload) > 1 {
		code := int(payload[0])<<8 | int(payload[1])
		if maySay(code) && utf8.Valid(payload[2:]) {
			return code, nil
		}
	}
	return 0, broken("the close frame is not one")
}

// maySay reports whether a peer may close with a code.
func maySay(code int) bool {
	switch {
	case code == 1004 || code == CloseNoStatus || code == 1006:
		return false
	}
	return code >= CloseNormal && code <= 1014 || code >= 3000 && code < 5000
}
