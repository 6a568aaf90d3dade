package p2phost

import (
	"bytes"
	"strings"
	"testing"
)

const (
	lines  = "\x13/multistream/1.0.0\n\x07/noise\n"
	first  = "\x00\x20" + "0123456789abcdef0123456789abcdef"
	second = "\x01\x00"
)

func TestNothingLargeComesBeforeAPeerHasProvenWhoItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, said string
		fits, over bool
	}{
		{"nothing", "", true, false},
		{"lines", lines, true, false},
		{"another protocol before", "\x13/multistream/1.0.0\n\x0b/tls/1.0.0\n\x07/noise\n" + first, true, false},
		{"half a handshake", lines + first + second, true, false},
		{"a handshake", lines + first + second + strings.Repeat("x", 256), true, true},
		{"what comes behind it", lines + first + second + strings.Repeat("x", 256) + "\xff\xff and more", true, true},
		{"a key of RSA", lines + first + "\x08\x00" + strings.Repeat("x", 2048), true, true},
		{"a long line", "\x13/multistream/1.0.0\n\x81\x08", false, false},
		{"a line of endless length", "\xff\xff\xff\xff", false, false},
		{"a large message", lines + "\x20\x01", false, false},
		{"a large second message", lines + first + "\xff\xff", false, false},
	} {
		for size := 1; size <= 64; size *= 4 { // in whatever pieces it comes
			var h hello
			fits := true
			for rest := []byte(c.said); len(rest) > 0 && fits; {
				n := min(size, len(rest))
				fits, rest = h.fits(rest[:n]), rest[n:]
			}
			if fits != c.fits || h.done() != c.over {
				t.Errorf("%s in pieces of %d: fits %v, over %v, want %v, %v", c.name, size, fits, h.done(), c.fits, c.over)
			}
		}
	}
}

// FuzzHello follows what strangers say: in one piece as in two, and it keeps no more of it than a line.
func FuzzHello(f *testing.F) {
	f.Add([]byte(lines+first+second), 5)
	f.Add([]byte("\x80\x80\x80"), 1)
	f.Fuzz(func(t *testing.T, said []byte, at int) {
		at = max(0, min(at, len(said)))
		var one, two hello
		whole := one.fits(said)
		parts := two.fits(said[:at]) && two.fits(said[at:])
		if whole != parts || one.done() != two.done() || !bytes.Equal(one.line, two.line) {
			t.Errorf("%q: %v and %v in one piece, %v and %v in two", said, whole, one.done(), parts, two.done())
		}
		if len(one.line) > len(noiseLine)+1 || len(one.size) > 3 {
			t.Errorf("%d bytes are kept", len(one.line)+len(one.size))
		}
	})
}

// What a frame announces counts before it has come, and what stands behind it is no frame.
func TestFramesCountWhenTheyAreAnnounced(t *testing.T) {
	t.Parallel()
	a := new(tally)
	c := &counted{of: &muxed{admission: a, streams: map[uint32]*window{}}}
	say := func(header ...byte) bool {
		copy(c.header[:], header)
		return c.frame()
	}
	if !say(0, 0, 0, flagBegin, 0, 0, 0, 1, 0, 4, 0, 0) || a.held.Load() != 256<<10 || c.left != 256<<10 {
		t.Errorf("%d bytes count, %d stand behind the header, want %d of both", a.held.Load(), c.left, 256<<10)
	}
	c.left = 0
	if !say(0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0) || a.held.Load() != 256<<10 {
		t.Errorf("%d bytes count of a stream that is none", a.held.Load())
	}
	if !say(0, 1, 0, 0, 0, 0, 0, 1, 0, 4, 0, 0) || a.held.Load() != 256<<10 {
		t.Errorf("%d bytes count of a window", a.held.Load())
	}
	a.most = 300 << 10
	if say(0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0) {
		t.Error("a connection goes on that holds too much")
	}
}
