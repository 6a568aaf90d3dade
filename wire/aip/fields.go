package aip

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
)

// fields walks the fields of an encoded message, unknown ones included. It decodes nothing and allocates nothing.
type fields struct {
	rest   []byte
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // of a field whose kind is BytesType: a slice of what is walked over
	varint uint64 // of one whose kind is VarintType
	err    error  // why the walk ended before its end; nil where it did not
}

// next goes to the next field; false at the end, and where the bytes are malformed.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		return f.fail(n)
	}
	f.number, f.kind, f.rest = number, kind, f.rest[n:]
	switch kind {
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(f.rest)
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(f.rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, f.rest)
	}
	if n < 0 {
		return f.fail(n)
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) fail(n int) bool {
	f.err = protowire.ParseError(n)
	return false
}

// text sets into to the field's text where that is one of UTF-8, and ends the walk otherwise.
func (f *fields) text(into *[]byte) {
	if f.kind != protowire.BytesType {
		return // an unknown field, as protobuf has it
	}
	if !utf8.Valid(f.bytes) {
		f.err = errUTF8
		return
	}
	*into = f.bytes
}

// errUTF8 is what is wrong with a text.
var errUTF8 = errors.New("a text is not valid UTF-8")

// malformed returns the INVALID_REQUEST that says that bytes are no message of a type; nil where err is.
func malformed(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, is := errors.AsType[*agora.Error](err); is { // it is something else that is wrong
		return err
	}
	e := &agora.Error{Code: agora.InvalidRequest, Message: "the bytes are no " + what, Cause: err}
	if errors.Is(err, errUTF8) {
		e.Message += ": " + errUTF8.Error()
	}
	return e
}

// appendText appends a field of text or bytes, unless that is empty.
func appendText[T ~string | ~[]byte](dst []byte, number protowire.Number, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	return appendField(dst, number, v)
}

// appendField appends a field of text or bytes, even an empty one.
func appendField[T ~string | ~[]byte](dst []byte, number protowire.Number, v T) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	return append(protowire.AppendVarint(dst, uint64(len(v))), v...)
}
