package p2p

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
)

// maxIdle is how many reads of nothing, without an error, are made one after the other.
const maxIdle = 100

var (
	errTooLarge = errors.New("the request is larger than it may be")
	errNoObject = errors.New("the request is no object")
)

// Read reads a request from the beginning of a stream: the first JSON value, which is an object, or what came before EOF. It returns with the object's last
// byte, however much more the stream may have and whether or not its writer has closed it, and sooner where what has come can't become a request. What comes in the
// same read behind the object is dropped. max bounds its bytes, and white space before it; 0 means [MaxRequest].
//
// Every error is a [Fault]: 400 for what is no request, 408 where the stream's deadline has passed, 413 beyond max. How long it may take is for the caller to
// bound, by the stream's deadline. The request is the caller's.
func Read(r io.Reader, max int) (Request, error) {
	max = cmp.Or(max, MaxRequest)
	in := &source{r: r, left: max}
	first := make([]byte, firstRead)
	n, err := in.Read(first)
	if end := objectEnd(first[:n]); end > 0 { // most have come whole
		return Decode(first[:end:end])
	}
	if n == 0 && err != nil {
		return Request{}, unread(err, max)
	}
	var value json.RawMessage
	if err := json.NewDecoder(io.MultiReader(bytes.NewReader(first[:n]), in)).Decode(&value); err != nil {
		return Request{}, unread(err, max)
	}
	return Decode(value)
}

// firstRead is how many bytes are read at first.
const firstRead = 2 << 10

// objectEnd returns how many bytes the object has that a text begins with, white space before it included; 0 where its end has not come. Whether it is well-formed is not looked at.
func objectEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return 0
}

// unread returns the failure of a request that could not be read.
func unread(err error, max int) error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errTooLarge):
		return NewFault(http.StatusRequestEntityTooLarge, "the request is larger than %d bytes", max)
	case errors.Is(err, errNoObject):
		return malformed("the request must be a JSON object")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		f := NewFault(http.StatusRequestTimeout, "the request did not come in time")
		f.Err.Cause = err
		return f
	case errors.Is(err, io.EOF):
		return malformed("the request is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return broken(err)
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return malformed("the request is no JSON: %v", bad)
	}
	return broken(err)
}

// source reads a stream up to a bound, and only while it may begin an object. A decoder reads from it as much as the stream has, and asks for more only while its
// value is incomplete.
type source struct {
	r     io.Reader
	left  int
	begun bool // the object's brace has come
}

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errTooLarge
	}
	p = p[:min(len(p), s.left)]
	for range maxIdle {
		n, err := s.r.Read(p)
		s.left -= n
		if n > 0 && !s.begun && !s.begins(p[:n]) {
			return 0, errNoObject
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// begins reports whether what has come is white space, or the beginning of an object.
func (s *source) begins(p []byte) bool {
	for _, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{':
			s.begun = true
			return true
		default:
			return false
		}
	}
	return true
}
