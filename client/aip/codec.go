package aip

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame is a message that a gateway passes on: the bytes that it came in.
type frame struct{ bytes []byte }

// codec encodes messages as protobuf does, and frames not at all.
type codec struct{}

// Name implements encoding.CodecV2: on the wire there is nothing but protobuf.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *frame:
		return mem.BufferSlice{mem.SliceBuffer(v.bytes)}, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return nil, fmt.Errorf("a %T is no message", v)
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *frame:
		v.bytes = data.Materialize()
		return nil
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	}
	return fmt.Errorf("a %T is no message", v)
}

// heading is what a gateway reads of a message or of the call of a tool: the fields 1 to 4. The fourth is a number in messages only.
type heading struct {
	sender, receiver, session string
	status                    SessionStatus
}

// heading reads the fields of a frame that say where it goes. INVALID_ARGUMENT for what is no message.
func (f *frame) heading() (h heading, err error) {
	texts := map[protowire.Number]*string{1: &h.sender, 2: &h.receiver, 3: &h.session}
	err = eachField(f.bytes, func(number protowire.Number, kind protowire.Type, value []byte) error {
		switch {
		case texts[number] != nil && kind == protowire.BytesType:
			s, n := protowire.ConsumeString(value)
			*texts[number] = s
			return protowire.ParseError(n)
		case number == 4 && kind == protowire.VarintType:
			v, n := protowire.ConsumeVarint(value)
			h.status = SessionStatus(v)
			return protowire.ParseError(n)
		}
		return nil
	})
	return h, err
}

// eachField calls f for each field of a message that is bytes, with what stands behind its tag.
func eachField(b []byte, f func(number protowire.Number, kind protowire.Type, value []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(number, kind, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
