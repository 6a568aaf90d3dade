package wire

import (
	"bytes"
	"errors"
)

// Line appends to dst what carries a text to one agent or space, as one write.
// The id, unique within its connection, is what a receipt names.
type Line func(dst []byte, id uint64, text []byte) []byte

// Handler takes what a connection receives. Texts are good until the call
// returns; none of the functions may be nil or block for long.
type Handler struct {
	Text    func(text []byte) // a chunk, message or event has arrived
	Receipt func(id uint64)   // what was sent under this id is receipted
	Fault   func(what string) // the server refused something
}

// ErrNone says that a system has nothing of the kind.
var ErrNone = errors.New("there is no such thing in this system")

// cut returns what stands between key and the next quote; texts have none in them.
func cut(frame []byte, key string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(frame, []byte(key))
	if !ok {
		return nil, false
	}
	text, _, ok := bytes.Cut(rest, []byte{'"'})
	return text, ok
}

// number reads the digits that b begins with.
func number(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}
