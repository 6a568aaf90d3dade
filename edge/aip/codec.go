package aip

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// frame is a message as the bytes that it came in. Who received it owes it a call of free, unless it is sent, which does that.
type frame struct{ data mem.BufferSlice }

// bytes returns the message's bytes, for reading. Where it came in several pieces it is put together first.
func (f *frame) bytes() []byte {
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

func (f *frame) len() int { return f.data.Len() }

func (f *frame) free() {
	f.data.Free()
	f.data = nil
}

// append appends bytes to the message, which are not to be changed any more.
func (f *frame) append(b []byte) { f.data = append(f.data, mem.SliceBuffer(b)) }

// frameOf returns a message of bytes, which are not to be changed any more.
func frameOf(b []byte) *frame { return &frame{mem.BufferSlice{mem.SliceBuffer(b)}} }

// codec passes a frame as it is, and encodes everything else as protobuf does.
type codec struct{}

// Name implements encoding.CodecV2: to peers it is protobuf like any.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. A frame's bytes are gRPC's from now on.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *frame:
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
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *frame:
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
