// Package aip is AIP as its programs speak it, by plain gRPC: the messages, a client, and a node that answers. Messages
// are encoded and decoded as generated code does it, with a copy each.
package aip

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc/mem"
)

// Status is what a message of a session is.
type Status byte

// The statuses.
const (
	Start Status = iota
	Hold
	HoldResponse
	Stop
	StopResponse
)

// Message is an AgentMessage with one item of content at most.
type Message struct {
	Sender, Receiver, Session string
	Status                    Status
	Kind                      Kind
	Content                   []byte // nil for no item
}

// Kind is what an item of content is: its field's number.
type Kind byte

// The kinds.
const (
	Text  Kind = 1
	Image Kind = 2
)

// Request is a ToolRequest.
type Request struct{ Sender, Receiver, Session, Tool, Arguments string }

// Response is a ToolResponse with one text.
type Response struct{ Sender, Receiver, Session, Text string }

// info is what a node registers with: an AgentInfo, or a ToolBoxInfo, of which these fields have the same numbers.
type info struct{ id, address, name, domain string }

// named is a message whose first field names somebody: HeartbeatRequest, DeregisterNodeRequest.
type named struct{ id string }

// done is a response of which nothing is looked at.
type done struct{}

// encoder is what can be said.
type encoder interface{ encode(b []byte) []byte }

// decoder is what can be heard.
type decoder interface {
	field(number int, varint uint64, data []byte)
}

func (m *Message) encode(b []byte) []byte {
	b = texts(b, 1, m.Sender, m.Receiver, m.Session)
	if m.Status != Start {
		b = append(b, 4<<3, byte(m.Status))
	}
	if m.Content == nil {
		return b
	}
	length := binary.AppendUvarint(nil, uint64(len(m.Content)))
	b = append(b, 8<<3|2)
	b = binary.AppendUvarint(b, uint64(1+len(length)+len(m.Content)))
	b = append(b, byte(m.Kind)<<3|2)
	return append(append(b, length...), m.Content...)
}

func (m *Message) field(number int, varint uint64, data []byte) {
	switch number {
	case 1:
		m.Sender = string(data)
	case 2:
		m.Receiver = string(data)
	case 3:
		m.Session = string(data)
	case 4:
		m.Status = Status(varint)
	case 8:
		_ = fields(data, func(kind int, _ uint64, content []byte) { // what is cut short shows by its length
			m.Kind, m.Content = Kind(kind), append([]byte{}, content...)
		})
	}
}

func (r *Request) encode(b []byte) []byte {
	return texts(b, 1, r.Sender, r.Receiver, r.Session, r.Tool, r.Arguments)
}

func (r *Request) field(number int, _ uint64, data []byte) {
	if all := []*string{&r.Sender, &r.Receiver, &r.Session, &r.Tool, &r.Arguments}; number >= 1 && number <= len(all) {
		*all[number-1] = string(data)
	}
}

func (r *Response) encode(b []byte) []byte {
	b = texts(b, 1, r.Sender, r.Receiver, r.Session)
	return texts(b, 6, string(texts(nil, int(Text), r.Text)))
}

func (r *Response) field(number int, _ uint64, data []byte) {
	switch number {
	case 1:
		r.Sender = string(data)
	case 2:
		r.Receiver = string(data)
	case 3:
		r.Session = string(data)
	case 6:
		_ = fields(data, func(_ int, _ uint64, text []byte) { r.Text = string(text) }) // as above
	}
}

func (i *info) encode(b []byte) []byte  { return texts(b, 1, i.id, i.address, i.name, i.domain) }
func (n *named) encode(b []byte) []byte { return texts(b, 1, n.id) }
func (*done) field(int, uint64, []byte) {}

// texts appends fields with consecutive numbers, but for those that are empty.
func texts(b []byte, first int, all ...string) []byte {
	for i, s := range all {
		if s != "" {
			b = append(b, byte(first+i)<<3|2)
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	return b
}

var errShort = errors.New("aip: a message is cut short")

// fields calls f for each field of a message that is a number or has a length; no other ones occur.
func fields(b []byte, f func(number int, varint uint64, data []byte)) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		v, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || key&7 != 0 && key&7 != 2 {
			return errShort
		}
		b = b[n+m:]
		if key&7 == 0 {
			f(int(key>>3), v, nil)
			continue
		}
		if v > uint64(len(b)) {
			return errShort
		}
		f(int(key>>3), 0, b[:v])
		b = b[v:]
	}
	return nil
}

// codec is how gRPC has messages encoded.
type codec struct{}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	e, ok := v.(encoder)
	if !ok {
		return nil, fmt.Errorf("aip: %T can't be said", v)
	}
	room := 256
	if m, ok := v.(*Message); ok {
		room += len(m.Content)
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(room)
	*buf = e.encode((*buf)[:0])
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	d, ok := v.(decoder)
	if !ok {
		return fmt.Errorf("aip: %T can't be heard", v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	return fields(whole.ReadOnlyData(), d.field)
}
