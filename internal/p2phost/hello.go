package p2phost

import (
	"encoding/binary"
	"errors"
)

// hello follows what a peer says before it has proven who it is: lines of multistream, each behind its length, and
// behind the line "/noise" two messages of Noise, each behind its length. Anyone who reads them makes room for as much
// as a length announces: a stranger may not have 64 KiB for two bytes.
type hello struct {
	noise int    // messages of Noise that are to come; 0 until the line
	over  bool   // all have come
	size  []byte // of the length that comes
	left  int    // bytes of what stands behind it
	line  []byte // of multistream, its first bytes
}

const (
	mostLine    = 1024 // as the library has it
	mostNoise   = 8192 // a key of RSA and what it has signed are below 2 KiB
	noiseLine   = "/noise\n"
	noiseHellos = 2 // of who has dialled
)

var errHello = errors.New("the peer announces more than it may before it has proven who it is")

// done reports whether all of it has come.
func (h *hello) done() bool { return h.over }

// fits follows what has come, and reports whether it is as it may be.
func (h *hello) fits(b []byte) bool {
	for len(b) > 0 && !h.over {
		if h.left > 0 {
			b = b[h.take(b):]
			continue
		}
		h.size, b = append(h.size, b[0]), b[1:]
		n, whole := h.length()
		if !whole && len(h.size) < 3 {
			continue
		}
		if !whole || n > mostNoise || h.noise == 0 && n > mostLine {
			return false
		}
		h.size, h.left = h.size[:0], n
		if n == 0 {
			h.end()
		}
	}
	return true
}

// length returns the length that has come; false while it is not complete.
func (h *hello) length() (int, bool) {
	if h.noise > 0 {
		if len(h.size) < 2 {
			return 0, false
		}
		return int(binary.BigEndian.Uint16(h.size)), true
	}
	n, used := binary.Uvarint(h.size)
	return int(n), used > 0
}

// take takes bytes that stand behind a length, and returns how many.
func (h *hello) take(b []byte) int {
	n := min(len(b), h.left)
	if h.noise == 0 && len(h.line) <= len(noiseLine) {
		h.line = append(h.line, b[:min(n, len(noiseLine)+1-len(h.line))]...)
	}
	if h.left -= n; h.left == 0 {
		h.end()
	}
	return n
}

// end notes that something is complete.
func (h *hello) end() {
	switch {
	case h.noise > 0:
		h.noise--
		h.over = h.noise == 0
	case string(h.line) == noiseLine:
		h.noise = noiseHellos
	}
	h.line = h.line[:0]
}
