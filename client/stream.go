package client

import (
	"context"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// maxChunk is the most text that one chunk carries; a larger Write becomes several.
const maxChunk = 64 << 10

// Stream is text on its way to another agent or into a space. It is an
// [io.WriteCloser] for one goroutine: each Write is one chunk, which goes out at
// once and survives a reconnect. The context it was opened with governs it: when that
// ends before Close, the stream is cancelled.
type Stream struct {
	sender *sender
	ctx    context.Context
	out    *outStream
	stop   func() bool // ends the watch over ctx

	close sync.Once
	over  error // what Close returned
	carry text
}

// OpenStream begins a stream to an agent, with a payload or nil. It returns
// when the cluster has stored the beginning.
func (c *Client) OpenStream(ctx context.Context, to string, payload any) (*Stream, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, err
	}
	return c.sender.openStream(ctx, &frame{typ: "send", to: laneKey{agent: to}, stream: newID("s"), more: true, body: body}, nil)
}

// watch cancels the stream when its context ends.
func (s *Stream) watch() {
	s.stop = context.AfterFunc(s.ctx, func() { s.cancel(context.Cause(s.ctx)) })
}

// ID returns the id of the stream, or of the event.
func (s *Stream) ID() string { return s.out.key.id }

// Write sends p as one chunk. It blocks while too much is under way, and
// returns what made the stream fail. An incomplete rune at the end waits for
// the rest of it; bytes that are no UTF-8 are an INVALID_REQUEST error, and nothing of p is sent.
func (s *Stream) Write(p []byte) (int, error) {
	chunk, err := s.carry.add(p)
	if err != nil {
		return 0, err
	}
	for len(chunk) > 0 {
		n := cut(chunk, maxChunk)
		if err := s.chunk(chunk[:n]); err != nil {
			return 0, err
		}
		chunk = chunk[n:]
	}
	return len(p), nil
}

// WriteString is Write for a string; an empty one is sent as an empty chunk.
func (s *Stream) WriteString(text string) (int, error) {
	if text == "" {
		return 0, s.chunk(nil)
	}
	return s.Write([]byte(text))
}

func (s *Stream) chunk(text []byte) error {
	body := make([]byte, 0, len(text)+len(text)/8+16)
	if s.out.key.to.space != "" {
		body = append(rawjson.AppendText(append(body, `{"text":`...), text), '}')
	} else {
		body = rawjson.AppendText(body, text)
	}
	return s.sender.out.add(s.ctx, s.out.part("chunk", body))
}

// Close ends the stream and returns when the cluster has stored its end. Once it has
// returned nil, everything that was written is stored.
func (s *Stream) Close() error { return s.finish(nil) }

// CloseWith is Close with a payload that the end carries; see [Message.EndPayload]. An event of a space has none: then
// it is an INVALID_REQUEST error, and the stream stays open.
func (s *Stream) CloseWith(payload any) error {
	body, err := encode(payload)
	if err == nil && s.out.key.to.space != "" {
		err = agora.Errorf(agora.InvalidRequest, "the end of an event has no payload")
	}
	if err != nil {
		return err
	}
	return s.finish(body)
}

func (s *Stream) finish(payload []byte) error {
	s.close.Do(func() {
		defer s.stop()
		if s.over = s.carry.end(); s.over != nil {
			s.cancel(s.over)
			return
		}
		s.over = s.sender.send(s.ctx, s.out.part("end", payload))
		s.sender.out.ended(s.out)
	})
	return s.over
}

// Cancel gives the stream up: the one who gets it is told, and never sees a normal
// end. It never blocks. After Close it does nothing.
func (s *Stream) Cancel() {
	s.close.Do(func() {
		s.over = ErrCancelled
		s.stop()
		s.cancel(ErrCancelled)
	})
}

// cancel fails the stream and tells those who get it, if there was anything to get.
func (s *Stream) cancel(why error) {
	if _, begun := s.sender.out.fail(s.out.key, why); begun {
		s.sender.out.force(s.out.cancellation())
	}
}

// text puts together what is written in pieces that may cut a rune.
type text struct{ rest []byte }

// add returns what is complete, p's own bytes where nothing was left from before.
func (t *text) add(p []byte) ([]byte, error) {
	all := p
	if len(t.rest) > 0 {
		all = slices.Concat(t.rest, p)
	}
	n := len(all) - partial(all)
	if !utf8.Valid(all[:n]) {
		return nil, agora.Errorf(agora.InvalidRequest, "text of a stream must be UTF-8")
	}
	t.rest = append(t.rest[:0:0], all[n:]...)
	return all[:n], nil
}

// end returns an error when half a rune is left.
func (t *text) end() error {
	if len(t.rest) > 0 {
		return agora.Errorf(agora.InvalidRequest, "text of a stream ends inside a character")
	}
	return nil
}

// partial returns how many bytes at the end of b begin a rune and don't end it.
func partial(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// cut returns how much of valid UTF-8 to take, at most max bytes and no part of a rune.
func cut(b []byte, max int) int {
	if len(b) <= max {
		return len(b)
	}
	for !utf8.RuneStart(b[max]) {
		max--
	}
	return max
}
