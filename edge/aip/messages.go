package aip

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/wire/aip"
)

// transportStream is what of a call gRPC reads its messages from. With it a message is read piece by piece, so that no
// more of it has come than was counted; gRPC itself invites a whole message at once, however large it says that it is.
type transportStream interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// account counts what is kept of a caller's messages. One goroutine reads the messages of a call.
type account interface {
	// begin says that the reader waits for a message, or for more of one. It returns why no more is to be read.
	begin() error
	// come says that a message has begun to come, and is to be whole soon.
	come()
	// whole says that it has come to its end.
	whole()
	// complete says that nothing more is to come.
	complete()
	// hold counts n more bytes of it. Its error ends the message.
	hold(n int) error
	// free says that what was held is kept no more.
	free()
}

// messages reads the messages of one call. It is the call's stream, with what it receives counted.
type messages struct {
	grpc.ServerStream // nil for a call of one message each way
	ctx               context.Context
	from              transportStream
	by                account
	most              int  // bytes of a message
	many              bool // the caller may send several
	head              [5]byte
}

// messagesOf returns what reads the messages of a call; ctx is one of it.
func messagesOf(ctx context.Context, by account, most int) (*messages, error) {
	from, is := grpc.ServerTransportStreamFromContext(ctx).(transportStream)
	if !is {
		return nil, status.Error(codes.Internal, "messages can't be read piece by piece")
	}
	return &messages{ctx: ctx, from: from, by: by, most: most}, nil
}

// Context implements grpc.ServerStream.
func (m *messages) Context() context.Context { return m.ctx }

// RecvMsg implements grpc.ServerStream. What was received before is counted no more.
func (m *messages) RecvMsg(v any) error {
	m.by.free()
	if err := m.receive(v); err != nil {
		return err
	}
	if m.many {
		return nil
	}
	return m.end()
}

// receive reads one message; io.EOF where no more comes.
func (m *messages) receive(v any) error {
	if err := m.by.begin(); err != nil {
		return err
	}
	if err := m.from.ReadMessageHeader(m.head[:]); err != nil {
		return m.broken(err)
	}
	m.by.come()
	data, err := m.body()
	if err != nil {
		return m.broken(err)
	}
	m.by.whole()
	defer data.Free()
	if err := (aip.Codec{}).Unmarshal(data, v); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

// end waits for the end of a call of one message.
func (m *messages) end() error {
	m.by.come()
	if err := m.by.begin(); err != nil {
		return err
	}
	err := m.from.ReadMessageHeader(m.head[:])
	if errors.Is(err, io.EOF) {
		m.by.complete()
		return nil
	}
	if err == nil {
		return status.Error(codes.Internal, "cardinality violation: received multiple request messages for non-client-streaming RPC")
	}
	return m.broken(err)
}

// broken returns the error of a read as the call's: what ended the call from here goes before what followed from that.
func (m *messages) broken(err error) error {
	if why := cause(m.ctx); why != nil {
		return why
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return status.Error(codes.Internal, io.ErrUnexpectedEOF.Error())
	case errors.Is(err, io.EOF) && !m.many:
		return status.Error(codes.Internal, "cardinality violation: received no request message from non-client-streaming RPC")
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return err
}

// messagePiece is how much of a message is counted, and invited, at once.
const messagePiece = 64 << 10

// body reads the message whose header has come.
func (m *messages) body() (data mem.BufferSlice, err error) {
	size := int64(binary.BigEndian.Uint32(m.head[1:]))
	if size > int64(m.most) {
		return nil, status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, m.most)
	}
	inflate, err := m.inflates()
	if err != nil {
		return nil, err
	}
	for left := int(size); left > 0; {
		n := min(left, messagePiece)
		err := m.by.hold(n)
		var piece mem.BufferSlice
		if err == nil {
			piece, err = m.from.Read(n)
		}
		if err != nil {
			data.Free()
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		data = append(data, piece...)
		left -= n
	}
	if inflate != nil {
		return m.inflated(inflate, data)
	}
	return data, nil
}

// inflates returns what undoes the compression of the message whose header has come; nil where it has none.
func (m *messages) inflates() (encoding.Compressor, error) {
	switch m.head[0] {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, status.Errorf(codes.Internal, "grpc: received unexpected payload format %d", m.head[0])
	}
	name := m.from.RecvCompress()
	if name == "" || name == encoding.Identity {
		return nil, status.Error(codes.Internal, "grpc: compressed flag set with identity or empty encoding")
	}
	c := encoding.GetCompressor(name)
	if c == nil {
		return nil, status.Errorf(codes.Unimplemented, "grpc: Decompressor is not installed for grpc-encoding %q", name)
	}
	return c, nil
}

// inflated undoes the compression of a message, which may not be larger than the bound afterwards. What comes out is
// counted, too.
func (m *messages) inflated(c encoding.Compressor, data mem.BufferSlice) (mem.BufferSlice, error) {
	defer data.Free()
	in := data.Reader()
	defer in.Close()
	r, err := c.Decompress(in)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: failed to decompress the message: %v", err)
	}
	if closer, is := r.(io.Closer); is {
		defer closer.Close()
	}
	out, err := mem.ReadAll(io.LimitReader(&counted{r, m.by}, int64(m.most)+1), mem.DefaultBufferPool())
	switch {
	case err == nil && out.Len() > m.most:
		err = status.Errorf(codes.ResourceExhausted, "grpc: received message after decompression larger than max %d", m.most)
	case err != nil && status.Code(err) == codes.Unknown:
		err = status.Errorf(codes.Internal, "grpc: failed to read decompressed data: %v", err)
	}
	if err != nil {
		out.Free()
		return nil, err
	}
	return out, nil
}

// counted reads what an account counts.
type counted struct {
	io.Reader
	by account
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		if held := c.by.hold(n); held != nil {
			return n, statusOf(held).Err()
		}
	}
	return n, err
}
