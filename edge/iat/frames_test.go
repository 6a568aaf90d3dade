package iat

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agora-relay/agora/edge/ws/frame"
)

// unframed returns the payload that a frame of a server begins with, and what follows.
func unframed(t *testing.T, b []byte) (payload, rest []byte) {
	t.Helper()
	if len(b) < 2 || b[0] != frame.Final|byte(frame.Text) {
		t.Fatalf("no frame of text: %.10q", b)
	}
	n, head := int(b[1]), 2
	const length16, length64 = 126, 127
	switch n {
	case length16:
		n, head = int(binary.BigEndian.Uint16(b[2:])), 4
	case length64:
		n, head = int(binary.BigEndian.Uint64(b[2:])), 10
	}
	if least := map[int]int{2: 0, 4: length16, 10: 1 << 16}[head]; n < least || len(b) < head+n {
		t.Fatalf("a head of %d bytes says %d of %d", head, n, len(b)-head)
	}
	return b[head : head+n], b[head+n:]
}

func TestFramesOfEveryLength(t *testing.T) {
	s := new(frameLine)
	var all []byte
	var want []string
	for _, n := range []int{2, 116, 117, 124, 125, 126, 127, 1 << 10, 1<<16 - 9, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 18} {
		envelope := "{" + strings.Repeat(" ", n-2) + "}"
		for seq, says := range map[uint64]string{0: envelope, 7: envelope[:n-1] + `,"seq":7}`} {
			all = s.begin(all, seq)
			at := len(all)
			all = s.end(append(all, envelope...), at, seq)
			want = append(want, says)
		}
	}
	for i, w := range want {
		var got []byte
		if got, all = unframed(t, all); string(got) != w {
			t.Fatalf("frame %d has %d bytes, want %d", i, len(got), len(w))
		}
	}
	if len(all) > 0 {
		t.Errorf("%d bytes are left over", len(all))
	}
}

// source is a connection from which a reader is read.
type source struct {
	net.Conn
	io.Reader
}

func (s source) Read(b []byte) (int, error) { return s.Reader.Read(b) }

func TestWhatComesToASharedSocketIsReadOnce(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789abcde"), 5000)
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(sent)), "in halves": iotest.HalfReader(bytes.NewReader(sent)),
		"with its end": iotest.DataErrReader(bytes.NewReader(sent)),
	} {
		b := &shared{Conn: source{Reader: r}}
		got, room := []byte(nil), make([]byte, 1<<10)
		var err error
		for n := 0; err == nil; got = append(got, room[:n]...) {
			n, err = b.Read(room)
		}
		if err != io.EOF || !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes of %d are read, %v", name, len(got), len(sent), err)
		}
	}
}

func TestMoreThanAMessageMayHaveIsNotRead(t *testing.T) {
	for _, c := range []struct{ sent, most, want int }{{0, 10, 0}, {9, 10, 9}, {10, 10, 10}, {5000, 10, 10}, {5000, 5001, 5000}, {1 << 20, 1 << 20, 1 << 20}} {
		b, err := readUpTo(bytes.NewReader(make([]byte, c.sent)), make([]byte, 0, 16), c.most)
		if len(b) != c.want || err != nil {
			t.Errorf("of %d bytes %d are read where %d may be, %v", c.sent, len(b), c.most, err)
		}
	}
}
