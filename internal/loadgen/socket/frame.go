package socket

import "encoding/binary"

// Opcodes of WebSocket frames.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// AppendText appends a client's text frame to dst, which says what parts say one after the other. Its mask is of
// zeros, which servers take off like any other.
func AppendText[S bytestring](dst []byte, parts ...S) []byte {
	return appendFrame(dst, opText, parts...)
}

// AppendBinary is [AppendText] for a binary frame.
func AppendBinary[S bytestring](dst []byte, parts ...S) []byte {
	return appendFrame(dst, opBinary, parts...)
}

type bytestring interface{ string | []byte }

func appendFrame[S bytestring](dst []byte, op byte, parts ...S) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = append(dst, 0x80|op)
	switch {
	case n < 126:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 0x80|127), uint64(n))
	}
	dst = append(dst, 0, 0, 0, 0)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}
