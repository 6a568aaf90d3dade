package iat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/early"
	"github.com/agora-relay/agora/wire/iat"
)

// frameSink writes envelopes as messages of a WebSocket.
type frameSink struct {
	door *Door
	conn *websocket.Conn
	out  *int64 // envelopes
}

// First bytes of frames that are whole, and the lengths that say how a longer one follows (RFC 6455 section 5.2).
const (
	textFrame = 0x81
	pingFrame = 0x89

	length16, length64 = 126, 127
)

// frameHead is how much room is left for what stands before an envelope: most of them have a length of two bytes.
const frameHead = 4

func (s *frameSink) begin(dst []byte, _ uint64) []byte {
	return append(dst, make([]byte, frameHead)...)
}

func (s *frameSink) end(dst []byte, at int, seq uint64) []byte {
	*s.out++
	if seq > 0 { // beside what the sender has said
		dst = append(strconv.AppendUint(append(dst[:len(dst)-1], `,"seq":`...), seq, 10), '}')
	}
	head := dst[at-frameHead : at]
	head[0] = textFrame
	switch n := len(dst) - at; {
	case n < length16:
		head[1] = byte(n)
		return append(dst[:at-2], dst[at:]...)
	case n < 1<<16:
		head[1] = length16
		binary.BigEndian.PutUint16(head[2:], uint16(n))
		return dst
	default:
		head[1] = length64
		size := binary.BigEndian.AppendUint64(nil, uint64(n))
		return slices.Replace(dst, at-2, at, size...)
	}
}

func (s *frameSink) reconnect(dst []byte, after time.Duration) []byte {
	e := s.door.says()
	e.Type = iat.Notification
	e.Payload = append(strconv.AppendInt([]byte(`{"action":"`+iat.ActionReconnect+`","after_ms":`), after.Milliseconds(), 10), '}')
	dst = s.begin(dst, 0)
	return s.end(e.Append(dst), len(dst), 0)
}

func (s *frameSink) probe(dst []byte, data uint64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(append(dst, pingFrame, 8), data), nil
}

func (s *frameSink) look() time.Duration { return 0 } // pongs tell

// write writes whole frames, behind what the connection has gathered.
func (s *frameSink) write(b []byte) error { return flush(s.conn, b) }

// batching has the connection that is taken over gather what is written to it.
type batching struct{ http.ResponseWriter }

// Hijack takes the connection over from the HTTP server.
func (b batching) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := early.Handshake{ResponseWriter: b.ResponseWriter}.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &batch{Conn: c}, rw, nil
}

// batch is a connection whose writes wait for a flush: what a socket says beside what is delivered goes with that. It is read into large buffers while much
// comes. Its methods may be called at the same time, but one goroutine reads.
type batch struct {
	net.Conn
	in   *buffer.Buffer // what was read and not taken; nil while there is nothing
	used int            // of in
	full bool           // the last read was as large as it could be: more may have come

	mu  sync.Mutex // guards buf, and the writing
	buf []byte
}

// batchBytes is how much waits at most; it is also what one write may take, within writeTime.
const batchBytes = 64 << 10

// readBytes is how much is read at once while much comes.
const readBytes = 16 << 10

// Read reads what has come.
func (b *batch) Read(p []byte) (n int, err error) {
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

// Write keeps p, and writes what there is where that is much.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if len(b.buf) < batchBytes {
		return len(p), nil
	}
	return len(p), b.flush(nil)
}

// SetWriteDeadline does nothing: each piece has a deadline of its own.
func (b *batch) SetWriteDeadline(time.Time) error { return nil }

// flush writes what there is, and then more. mu is held.
func (b *batch) flush(more []byte) error {
	if len(b.buf) > 0 {
		kept := b.buf
		b.buf = nil
		if err := b.pieces(kept); err != nil {
			return err
		}
	}
	return b.pieces(more)
}

// pieces writes p, piece by piece. mu is held.
func (b *batch) pieces(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), batchBytes)
		_ = b.Conn.SetWriteDeadline(time.Now().Add(writeTime)) // an error shows when it is written
		if _, err := b.Conn.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// flush writes what a socket has gathered, and then more.
func flush(c *websocket.Conn, more []byte) error {
	b, ok := c.NetConn().(*batch)
	if !ok {
		return errNoBatch
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush(more)
}

var errNoBatch = errors.New("connection gathers nothing")
