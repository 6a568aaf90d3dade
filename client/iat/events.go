package iat

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// events are server-sent events as they come. One goroutine reads them.
type events struct {
	body    io.ReadCloser
	lines   *bufio.Reader
	silence time.Duration           // after which the connection is dead
	end     context.CancelCauseFunc // ends the request
	line    []byte
	data    []byte
}

// event is one of them.
type event struct {
	id, name string
	data     []byte // of the reader, until the next one is read
}

const (
	maxEvent  = 64 << 20 // bytes
	readBytes = 16 << 10
	keepBytes = 64 << 10 // room that a reader keeps
)

var errTooLong = errors.New("an event is too long")

func newEvents(body io.ReadCloser, silence time.Duration, end context.CancelCauseFunc) *events {
	return &events{body: body, lines: bufio.NewReaderSize(body, readBytes), silence: silence, end: end}
}

// next returns the next event that has data. Its error is why there is none: io.EOF at the end.
func (s *events) next() (v event, err error) {
	watch := time.AfterFunc(s.silence, func() { s.end(errSilent) })
	defer watch.Stop()
	if s.data = s.data[:0]; cap(s.data) > keepBytes {
		s.data, s.line = nil, nil
	}
	for has := false; ; {
		if err := s.readLine(); err != nil {
			return v, err
		}
		watch.Reset(s.silence)
		if len(s.line) == 0 {
			if has {
				v.data = s.data
				return v, nil
			}
			v = event{}
			continue
		}
		field, value, _ := bytes.Cut(s.line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if has {
				s.data = append(s.data, '\n')
			}
			s.data, has = append(s.data, value...), true
			if len(s.data) > maxEvent {
				return v, errTooLong
			}
		case "id":
			v.id = string(value)
		case "event":
			v.name = string(value)
		}
	}
}

// readLine reads a line, without what it ends with.
func (s *events) readLine() error {
	s.line = s.line[:0]
	for {
		piece, err := s.lines.ReadSlice('\n')
		s.line = append(s.line, piece...)
		if len(s.line) > maxEvent {
			return errTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == io.EOF && len(s.line) > 0 {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		s.line = bytes.TrimSuffix(bytes.TrimSuffix(s.line, []byte{'\n'}), []byte{'\r'})
		return nil
	}
}

func (s *events) close() { s.body.Close() } // whose error says nothing: the request is over
