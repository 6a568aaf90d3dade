package iat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/wire/iat"
)

// frameSink writes envelopes as messages of a WebSocket.
type frameSink struct {
	door *Door
	conn *websocket.Conn
	out  *int64 // envelopes
	err  error  // why nothing can be written any more
}

func (s *frameSink) append(seq uint64, envelope []byte) {
	*s.out++
	if seq > 0 { // beside what the sender has said
		envelope = append(strconv.AppendUint(append(envelope[:len(envelope)-1], `,"seq":`...), seq, 10), '}')
	}
	if s.err == nil {
		s.err = s.conn.WriteMessage(websocket.TextMessage, envelope)
	}
}

func (s *frameSink) reconnect(after time.Duration) {
	e := s.door.says()
	e.Type = iat.Notification
	e.Payload = append(strconv.AppendInt([]byte(`{"action":"`+iat.ActionReconnect+`","after_ms":`), after.Milliseconds(), 10), '}')
	s.append(0, e.Append(nil))
}

func (s *frameSink) probe(data uint64) {
	if s.err == nil {
		s.err = s.conn.WriteControl(websocket.PingMessage, binary.BigEndian.AppendUint64(nil, data), time.Now().Add(writeTime))
	}
}

func (s *frameSink) look() time.Duration { return 0 } // pongs tell

func (s *frameSink) flush() error {
	if s.err == nil {
		s.err = flush(s.conn)
	}
	return s.err
}

// batching has the connection that is taken over gather what is written to it.
type batching struct{ http.ResponseWriter }

// Hijack takes the connection over from the HTTP server.
func (b batching) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w, ok := b.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("connection can't be taken over")
	}
	c, rw, err := w.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &batch{Conn: c}, rw, nil
}

// batch is a connection whose writes wait for a flush, so that one system call writes many frames. Its methods may be called at the same time.
type batch struct {
	net.Conn

	mu  sync.Mutex // guards buf, and the writing
	buf []byte
}

// batchBytes is how much waits at most; it is also what one write may take, within writeTime.
const batchBytes = 64 << 10

// Write keeps p, and writes what there is where that is much.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if len(b.buf) < batchBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

// SetWriteDeadline does nothing: each piece has a deadline of its own.
func (b *batch) SetWriteDeadline(time.Time) error { return nil }

// flush writes what there is, piece by piece. mu is held.
func (b *batch) flush() error {
	for rest := b.buf; len(rest) > 0; {
		n := min(len(rest), batchBytes)
		_ = b.Conn.SetWriteDeadline(time.Now().Add(writeTime)) // an error shows when it is written
		if _, err := b.Conn.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if b.buf = b.buf[:0]; cap(b.buf) > keepLines {
		b.buf = nil
	}
	return nil
}

// flush writes what a socket has gathered.
func flush(c *websocket.Conn) error {
	b, ok := c.NetConn().(*batch)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}
