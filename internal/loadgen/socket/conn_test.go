package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// served returns a frame as servers write it.
func served(op byte, payload []byte) []byte {
	masked := appendFrame(nil, op, payload)
	head := len(masked) - len(payload) - 4
	masked[1] &^= 0x80
	return append(masked[:head:head], payload...)
}

func TestFramesOfEverySizeAreReadAndPingsAnswered(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := New(near, 512)
	sizes := []int{0, 1, 125, 126, 511, 512, 513, 65535, 65536, 200_000, 3}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for _, n := range sizes {
			_, _ = far.Write(served(opText, bytes.Repeat([]byte{'a'}, n))) // the reader misses what fails
		}
		_, _ = far.Write(served(opPing, []byte("ping")))
		pong := make([]byte, 10)
		if _, err := far.Read(pong); err != nil || !bytes.Equal(pong, appendFrame(nil, opPong, "ping")) {
			t.Errorf("the pong is %q, %v", pong, err)
		}
		_, _ = far.Write(served(opClose, []byte{4009 >> 8, 4009 & 0xff, 'x'}))
	})
	for _, n := range sizes {
		b, err := c.Next()
		if err != nil || len(b) != n || strings.Trim(string(b), "a") != "" || n > 0 && c.At() == 0 {
			t.Fatalf("a frame of %d bytes came as %d, %v", n, len(b), err)
		}
	}
	_, err := c.Next()
	if e, ok := errors.AsType[*ClosedError](err); !ok || e.Code != 4009 || e.Reason != "x" {
		t.Errorf("the end is %v", err)
	}
}

// fixed is a connection on which some bytes have come.
type fixed struct {
	net.Conn
	io.Reader
}

func (f fixed) Read(b []byte) (int, error) { return f.Reader.Read(b) }

func TestFramesAreReadAsOneStreamOfBytes(t *testing.T) {
	var came []byte
	for _, n := range []int{3, 0, 126, 70_000} {
		came = append(came, served(opBinary, bytes.Repeat([]byte{'a'}, n))...)
	}
	b, err := io.ReadAll(New(fixed{Reader: bytes.NewReader(came)}, 0))
	if err != nil || len(b) != 70_129 || strings.Trim(string(b), "a") != "" {
		t.Errorf("%d bytes are read, %v; want 70129", len(b), err)
	}
}

func TestWhatNoServerSendsIsAnError(t *testing.T) {
	for _, frame := range [][]byte{{0x01, 0}, {0xc1, 0}, {0x81, 0x80, 0, 0, 0, 0}, {0x83, 0}, {0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0}} {
		if b, err := New(fixed{Reader: bytes.NewReader(frame)}, 0).Next(); err == nil {
			t.Errorf("%x is read as %q", frame, b)
		}
	}
}
