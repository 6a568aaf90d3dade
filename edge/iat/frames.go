package iat

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/early"
	"github.com/agora-relay/agora/wire/iat"
)

// frameLine has envelopes written as messages of a WebSocket.
type frameLine struct {
	link   *link
	socket *shared
}

func (f *frameLine) begin(dst []byte, _ uint64) []byte { return frame.Begin(dst) }

func (f *frameLine) end(dst []byte, at int, seq uint64) []byte {
	if seq > 0 { // beside what the sender has said
		dst = append(strconv.AppendUint(append(dst[:len(dst)-1], `,"seq":`...), seq, 10), '}')
	}
	return frame.End(dst, at-frame.HeadRoom, frame.Text)
}

func (f *frameLine) reconnect(dst []byte, after time.Duration) []byte {
	e := f.link.door.says()
	e.Type = iat.Notification
	e.Payload = append(strconv.AppendInt([]byte(`{"action":"`+iat.ActionReconnect+`","after_ms":`), after.Milliseconds(), 10), '}')
	dst = f.begin(dst, 0)
	return f.link.end(e.Append(dst), len(dst), 0)
}

// probe asks by a ping, whose pong tells.
func (f *frameLine) probe(dst []byte, data uint64) []byte {
	return frame.AppendControl(dst, frame.Ping, binary.BigEndian.AppendUint64(nil, data))
}

// last appends the close frame.
func (f *frameLine) last(dst []byte, why edge.Reason) []byte {
	code, known := closes[why.Cause]
	if !known {
		code = websocket.ClosePolicyViolation
	}
	return frame.AppendClose(dst, code, why.Text[:min(len(why.Text), maxReason)])
}

// maxReason is how long the text of a close frame may be: control frames are short.
const maxReason = 120

func (f *frameLine) write(b []byte, w *deliver.Writer) (int, error) {
	return deliver.WriteSocket(f.socket.Conn, b, w, writeTime, f)
}

// Wrote implements deliver.Progress.
func (f *frameLine) Wrote(_ int, eased bool) {
	if eased {
		f.link.out.Session.Load().Alive()
	}
}

func (f *frameLine) cut() { f.socket.Conn.Close() }

// sharing has the connection that is taken over share its writing.
type sharing struct {
	http.ResponseWriter
	socket *shared
}

// Hijack takes the connection over from the HTTP server.
func (s sharing) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	s.socket.Conn, rw, err = early.Handshake{ResponseWriter: s.ResponseWriter}.Hijack()
	return s.socket, rw, err
}

// shared is a connection that is read by gorilla's package and written by an outbox: what that package writes, frames
// that answer others, goes through it as well. It is read into large buffers while much comes. One goroutine reads.
type shared struct {
	net.Conn
	in   *buffer.Buffer  // what was read and not taken; nil while there is nothing
	used int             // of in
	full bool            // the last read was as large as it could be: more may have come
	out  *deliver.Outbox // nil until the handshake is over
}

// readBytes is how much is read at once while much comes.
const readBytes = 16 << 10

// Read reads what has come.
func (b *shared) Read(p []byte) (n int, err error) {
	if b.in == nil && !b.full {
		n, err = b.Conn.Read(p)
		b.full = n == len(p)
		return n, err
	}
	if b.in == nil {
		b.full = false
		in := buffer.Get()
		in.B = slices.Grow(in.B, readBytes)[:readBytes]
		if n, err = b.Conn.Read(in.B); n == 0 {
			buffer.Put(in)
			return 0, err
		}
		in.B, b.in, b.used = in.B[:n], in, 0
	}
	n = copy(p, b.in.B[b.used:])
	if b.used += n; b.used == len(b.in.B) {
		b.full = b.used == readBytes
		buffer.Put(b.in)
		b.in = nil
	}
	return n, err
}

// Write queues whole frames.
func (b *shared) Write(p []byte) (int, error) {
	if b.out == nil {
		return b.Conn.Write(p)
	}
	if !b.out.Append(p) {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

// SetWriteDeadline does nothing: the outbox sees to its writes.
func (b *shared) SetWriteDeadline(time.Time) error { return nil }
