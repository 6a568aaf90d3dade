package loadgen

import "bytes"

// mark begins a stamp; ids and spaces of a load have no such character.
const mark = '@'

// StampSize is how many bytes a stamp takes: the smallest text that can be sent.
const StampSize = 1 + lineDigits + numberDigits + timeDigits

const (
	lineDigits   = 4
	numberDigits = 6
	timeDigits   = 9 // seven months, in nanoseconds
)

// Stamp is what a message of a load says.
type Stamp struct {
	Line   int    // which one of those that the load has
	Number uint64 // on its line, from 0
	At     int64  // when it was meant to be sent, in Ticks
}

// hello numbers messages that only try whether a line is open.
const hello = 1<<(6*numberDigits) - 1

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

// values is by digit its value; 64 for what is none.
var values = func() (v [256]byte) {
	for i := range v {
		v[i] = 64
	}
	for i := range len(digits) {
		v[digits[i]] = byte(i)
	}
	return v
}()

// put writes s over the first StampSize bytes of dst.
func (s Stamp) put(dst []byte) {
	dst[0] = mark
	write(dst[1:1+lineDigits], uint64(s.Line))
	write(dst[1+lineDigits:1+lineDigits+numberDigits], s.Number)
	write(dst[1+lineDigits+numberDigits:StampSize], uint64(s.At))
}

func write(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = digits[v&63]
		v >>= 6
	}
}

func read(src []byte) (v uint64, ok bool) {
	for _, c := range src {
		d := values[c]
		if d > 63 {
			return 0, false
		}
		v = v<<6 | uint64(d)
	}
	return v, true
}

// Find returns the first stamp in a frame, if it has one.
func Find(frame []byte) (s Stamp, ok bool) {
	i := bytes.IndexByte(frame, mark)
	if i < 0 || len(frame)-i < StampSize {
		return Stamp{}, false
	}
	b := frame[i+1 : i+StampSize]
	line, ok1 := read(b[:lineDigits])
	number, ok2 := read(b[lineDigits : lineDigits+numberDigits])
	at, ok3 := read(b[lineDigits+numberDigits:])
	return Stamp{int(line), number, int64(at)}, ok1 && ok2 && ok3
}

// Blank is room for a stamp, as [NewTemplate] finds it.
var Blank = string(Text(StampSize))

// Text returns a text of size bytes, which begins with room for a stamp.
func Text(size int) []byte {
	b := bytes.Repeat([]byte{'x'}, size)
	b[0] = mark
	return b
}

// Template is a Line whose frames differ by their stamps alone.
type Template struct {
	frame  []byte
	stamps [][]byte // where they stand in frame
}

// NewTemplate returns the template of a frame, which is its own from now on; each [Blank] in it becomes a stamp.
func NewTemplate(frame []byte) *Template {
	t := &Template{frame: frame}
	for rest := frame; ; {
		i := bytes.IndexByte(rest, mark)
		if i < 0 || i+StampSize > len(rest) {
			return t
		}
		t.stamps = append(t.stamps, rest[i:i+StampSize])
		rest = rest[i+StampSize:]
	}
}

// Frame implements Line.
func (t *Template) Frame(s Stamp) []byte {
	for _, at := range t.stamps {
		s.put(at)
	}
	return t.frame
}
