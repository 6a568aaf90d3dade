package aip

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Frame is a message as the bytes that it came in. Anyone who has received it owes it a call of Free, unless it is
// sent, which does that. One goroutine at a time uses it.
type Frame struct{ data mem.BufferSlice }

// Bytes returns the message's bytes, for reading. Where it came in several pieces it is put together first.
func (f *Frame) Bytes() []byte {
	switch len(f.data) {
	case 0:
		return nil
	case 1:
		return f.data[0].ReadOnlyData()
	}
	whole := f.data.MaterializeToBuffer(mem.DefaultBufferPool())
	f.data.Free()
	f.data = mem.BufferSlice{whole}
	return whole.ReadOnlyData()
}

// Len returns the message's size in bytes.
func (f *Frame) Len() int { return f.data.Len() }

// Free says that nobody reads the message any more. Idempotent.
func (f *Frame) Free() {
	f.data.Free()
	f.data = nil
}

// Append appends bytes to the message, which are not to be changed any more.
func (f *Frame) Append(b []byte) { f.data = append(f.data, mem.SliceBuffer(b)) }

// Move returns the message as another frame, and leaves this one empty: for another goroutine.
func (f *Frame) Move() *Frame {
	moved := &Frame{f.data}
	f.data = nil
	return moved
}

// NewFrame returns a message of bytes, which are not to be changed any more.
func NewFrame(b []byte) *Frame { return &Frame{mem.BufferSlice{mem.SliceBuffer(b)}} }

// Codec passes a [Frame] as it is, and encodes everything else as protobuf does.
type Codec struct{}

// Name implements encoding.CodecV2: to peers it is protobuf like any.
func (Codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. A frame's bytes are gRPC's from now on: it is empty then.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *Frame:
		data := v.data
		v.data = nil
		return data, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		if err != nil {
			return nil, err
		}
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return nil, fmt.Errorf("aip: %T is no message", v)
}

// Unmarshal implements encoding.CodecV2.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *Frame:
		data.Ref()
		v.data = data
		return nil
	case proto.Message:
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		return proto.Unmarshal(whole.ReadOnlyData(), v)
	}
	return fmt.Errorf("aip: %T is no message", v)
}
