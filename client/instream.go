package client

import (
	"context"
	"iter"
	"slices"
	"time"
)

// inStream is the text of a stream that comes in. One goroutine reads it.
type inStream struct {
	log    *inlog
	cancel func() // tells the other side that the rest is not wanted; never blocks

	ready chan struct{} // holds one token while there is a chunk, or the end

	// The log's lock guards these.
	chunks []inChunk
	bytes  int
	err    error     // io.EOF or why it ended; nil while it is open
	handed bool      // the application has it
	read   time.Time // when it was read last
	gone   bool      // the application wants no more of it
	end    []byte    // payload of its normal end
	unread int       // what that counts while the end was not read
	first  uint64    // ticket of what the stream began with
	left   bool      // the application is done with that, and first is not settled

	joiner joiner // the reader's own
	rest   string // what Read has not returned of a chunk; the reader's own
}

type inChunk struct {
	raw    string // as JSON has it, without its quotes
	ticket uint64
}

func newInStream(l *inlog, cancel func()) *inStream {
	return &inStream{log: l, cancel: cancel, ready: make(chan struct{}, 1)}
}

// push adds a chunk, a raw JSON string. It is called with the lock held.
func (s *inStream) push(chunk []byte, ticket uint64) {
	if s.gone {
		s.log.settle(ticket)
		return
	}
	raw := unquoted(chunk)
	s.chunks = append(s.chunks, inChunk{raw, ticket})
	s.bytes += len(raw) + frameCost
	s.log.bytes += len(raw) + frameCost
	signal(s.ready)
}

// finish takes the payload of its normal end. It is called with the lock held.
func (s *inStream) finish(payload []byte) {
	if s.gone || s.err != nil || payload == nil {
		return
	}
	s.end, s.unread = slices.Clone(payload), len(payload)
	s.bytes += s.unread
	s.log.bytes += s.unread
}

// payload returns that of the end, once it was read.
func (s *inStream) payload() []byte {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if len(s.chunks) > 0 || s.unread > 0 {
		return nil
	}
	return s.end
}

// hand notes that the application has the stream. It is called with the lock held.
func (s *inStream) hand() { s.handed, s.read = true, time.Now() }

// drop gives up what waits. It is called with the lock held.
func (s *inStream) drop() {
	for _, c := range s.chunks {
		s.log.settle(c.ticket)
	}
	s.log.bytes -= s.bytes
	if s.unread > 0 {
		s.end = nil
	}
	s.chunks, s.bytes, s.unread, s.gone = nil, 0, 0, true
	s.settle()
	s.log.freed()
}

// settle settles what the stream began with, if the application is done with all of it. It is called with the lock
// held.
func (s *inStream) settle() {
	if s.left && s.err != nil && len(s.chunks) == 0 && s.log.err == nil {
		s.left = false
		s.log.settle(s.first)
	}
}

// next returns the text of the next chunk, waiting for it, or the error that ended the stream. Half a
// character at the end of a chunk comes with the next one.
func (s *inStream) next(ctx context.Context) (string, error) {
	raw, err := s.nextRaw(ctx)
	if err == nil {
		return s.joiner.add(raw), nil
	}
	if ctx.Err() == nil && s.joiner.half != "" {
		return s.joiner.end(), nil // and the error the next time
	}
	return "", err
}

// nextRaw is next for the chunk as JSON has it.
func (s *inStream) nextRaw(ctx context.Context) (string, error) {
	for {
		if raw, ok, err := s.take(); ok || err != nil {
			return raw, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (s *inStream) take() (raw string, ok bool, err error) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(s.chunks) == 0 {
		if s.err != nil {
			signal(s.ready) // for the one who reads on
			s.bytes -= s.unread
			l.bytes -= s.unread
			s.unread = 0
			l.freed()
		}
		return "", false, s.err
	}
	c := s.chunks[0]
	s.chunks = s.chunks[1:]
	s.bytes -= len(c.raw) + frameCost
	l.bytes -= len(c.raw) + frameCost
	s.read = time.Now()
	l.settle(c.ticket)
	s.settle()
	l.freed()
	return c.raw, true, nil
}

// whole returns all that is left of it as one JSON string, byte for byte.
func (s *inStream) whole(ctx context.Context) ([]byte, error) {
	b := append([]byte{'"'}, s.joiner.half...)
	for {
		raw, err := s.nextRaw(ctx)
		switch {
		case ended(err):
			return append(b, '"'), nil
		case err != nil:
			return nil, err
		}
		b = append(b, raw...)
	}
}

// all yields chunk after chunk; the last pair has the error, if it ended with one.
func (s *inStream) all(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			text, err := s.next(ctx)
			if ended(err) || !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// text returns all that is left of it.
func (s *inStream) text(ctx context.Context) (string, error) {
	var b []byte
	for text, err := range s.all(ctx) {
		if err != nil {
			return string(b), err
		}
		b = append(b, text...)
	}
	return string(b), nil
}

// fill is Read over the text.
func (s *inStream) fill(p []byte) (int, error) {
	for s.rest == "" {
		text, err := s.next(context.Background())
		if err != nil {
			return 0, err
		}
		s.rest = text
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// close gives up the rest; the other side is told when there is one.
func (s *inStream) close(key streamKey) {
	l := s.log
	l.mu.Lock()
	open := s.err == nil
	l.endStream(key, s, ErrCancelled)
	s.drop()
	l.mu.Unlock()
	if open {
		s.cancel()
	}
}
