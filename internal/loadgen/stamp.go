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

// stamp is what a message of a load says.
type stamp struct {
	line   int    // which one of those that the load has
	number uint64 // on its line, from 0
	at     int64  // when it was meant to be sent, in Ticks
}

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
func (s stamp) put(dst []byte) {
	dst[0] = mark
	write(dst[1:1+lineDigits], uint64(s.line))
	write(dst[1+lineDigits:1+lineDigits+numberDigits], s.number)
	write(dst[1+lineDigits+numberDigits:StampSize], uint64(s.at))
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

// find returns the first stamp in a frame, if it has one.
func find(frame []byte) (s stamp, ok bool) {
	i := bytes.IndexByte(frame, mark)
	if i < 0 || len(frame)-i < StampSize {
		return stamp{}, false
	}
	b := frame[i+1 : i+StampSize]
	line, ok1 := read(b[:lineDigits])
	number, ok2 := read(b[lineDigits : lineDigits+numberDigits])
	at, ok3 := read(b[lineDigits+numberDigits:])
	return stamp{int(line), number, int64(at)}, ok1 && ok2 && ok3
}

// text returns a JSON string of size bytes between its quotes, which begins with room for a stamp.
func text(size int) []byte {
	b := bytes.Repeat([]byte{'x'}, size+2)
	b[0], b[1], b[size+1] = '"', mark, '"'
	return b
}
