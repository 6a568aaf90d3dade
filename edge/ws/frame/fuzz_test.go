package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// frames reads frames until the source ends, or the peer breaks the protocol, and returns their payloads, unmasked, each behind its first byte.
func frames(src io.Reader) (all [][]byte, err error) {
	var r Reader
	r.Open(0)
	defer r.Shut()
	for {
		h, err := r.head(src)
		if err != nil {
			return all, err
		}
		if h.op < Close {
			r.going = !h.final
		}
		var whole []byte
		for at := uint64(0); at < h.size; {
			piece := make([]byte, min(h.size-at, 100))
			n, err := r.read(src, piece)
			if err != nil {
				return all, err
			}
			h.unmask(piece[:n], at)
			whole, at = append(whole, piece[:n]...), at+uint64(n)
		}
		first := byte(h.op)
		if h.final {
			first |= Final
		}
		all = append(all, append([]byte{first}, whole...))
	}
}

// plainly is frames in the words of RFC 6455, §5.2: all that begin with whole and valid frames.
func plainly(b []byte) (all [][]byte) {
	for going := false; len(b) >= 6; {
		op, size, at := b[0]&0xf, uint64(b[1]&0x7f), 2
		switch {
		case size == 126 && len(b) >= 8:
			size, at = uint64(binary.BigEndian.Uint16(b[2:])), 4
		case size == 127 && len(b) >= 14:
			size, at = binary.BigEndian.Uint64(b[2:]), 10
		case size >= 126:
			return all
		}
		control := op >= 8 && op <= 10
		if b[0]&0x70 != 0 || b[1]&0x80 == 0 || op > 10 || op > 2 && op < 8 || control && (b[0]&0x80 == 0 || b[1]&0x7f > 125) || !control && (op == 0) != going {
			return all
		}
		if size > uint64(len(b)-at-4) {
			return all
		}
		mask, payload := b[at:at+4], bytes.Clone(b[at+4:][:size])
		for k := range payload {
			payload[k] ^= mask[k%4]
		}
		if all = append(all, append([]byte{b[0] & 0x8f}, payload...)); !control {
			going = b[0]&0x80 == 0
		}
		b = b[at+4+int(size):]
	}
	return all
}

// FuzzReader holds that what a stranger may send as frames is read as RFC 6455 says, in whatever pieces it comes, and that the end of what is read has one of two reasons: it is over, or the protocol is broken.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0x81, 0x85, 1, 2, 3, 4, 'h' ^ 1, 'e' ^ 2, 'l' ^ 3, 'l' ^ 4, 'o' ^ 1})
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, 'a', 0x89, 0x80, 9, 9, 9, 9, 0x80, 0x81, 0, 0, 0, 0, 'b'})
	f.Add(append([]byte{0x82, 0xfe, 0, 126, 1, 2, 3, 4}, make([]byte, 126)...))
	f.Add([]byte{0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	f.Add([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xe8})
	f.Add([]byte{0xc1, 0x80, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		want := plainly(b)
		for _, src := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			got, err := frames(src)
			if _, breach := errors.AsType[Breach](err); !breach && !errors.Is(err, io.EOF) {
				t.Fatalf("it ends with %v", err)
			}
			if len(got) != len(want) {
				t.Fatalf("%x: read %d frames, want %d", b, len(got), len(want))
			}
			for k := range got {
				if !bytes.Equal(got[k], want[k]) {
					t.Fatalf("%x: frame %d is %x, want %x", b, k, got[k], want[k])
				}
			}
		}
		if len(want) > 0 && want[0][0] == Final|byte(Close) {
			if code, err := CloseCode(want[0][1:]); err == nil && len(want[0]) > 1 && code != int(binary.BigEndian.Uint16(want[0][1:])) {
				t.Fatalf("%x closes with %d", want[0], code)
			}
		}
	})
}
