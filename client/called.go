package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// Call is a tool of another agent that was called, or a request that was handed off to it: what is answered comes by
// Chunks or Next while the agent still works, and by Result behind that. It must be read to its end, or closed: what
// waits of it counts against Config.MaxBuffered, and after Config.Stall a call that is not read and holds up others
// fails with STREAM_ABORTED. Its methods are for one goroutine, but for Close.
type Call struct {
	id      string
	to      string
	f       *frame
	life    *lifetime
	waiters *waiters
	log     *inlog      // that of the mailbox
	quit    func()      // nobody waits for the answer any more
	stop    func() bool // ends the watch over the call's context; the correlator's lock guards it

	ready chan struct{} // holds one token while there is a piece, or the end

	// The log's lock guards these.
	pieces []Answer
	index  uint32 // of the piece that is to come
	bytes  int
	read   time.Time // when it was read last
	result Answer
	err    error // io.EOF or why it ended; nil while it is open
}

// Answer is what an agent answers, or a piece of it.
type Answer struct {
	Body   json.RawMessage // as it was said, byte for byte; nil for none
	Media  string          // media type of what Body is a string of base64 of; empty where it is JSON or text
	Item   uint64          // of a piece that is a part of larger bytes: which of them, from 1; 0 where it is whole
	Status int             // of the result of a handoff: its code, as of HTTP; else 0
}

// Bytes returns what Body stands for: the bytes that base64 is of, the text of a string, any other JSON as it is. An
// error where base64 is none.
func (a Answer) Bytes() ([]byte, error) {
	switch {
	case len(a.Body) == 0 || a.Body[0] != '"':
		return a.Body, nil
	case a.Media != "":
		return base64.StdEncoding.DecodeString(rawjson.Unquote(a.Body))
	}
	return []byte(rawjson.Unquote(a.Body)), nil
}

// AnswerError is the error that an agent has answered with.
type AnswerError struct {
	Err    *agora.Error
	Status int    // of a handoff: its code, as of HTTP; else 0
	Path   string // where in what was asked; may be empty
}

// Error returns what the agent said.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the error with its code.
func (e *AnswerError) Unwrap() error { return e.Err }

// Agent returns whom the call is to.
func (t *Call) Agent() string { return t.to }

// Next returns the next piece of the answer. It blocks while there is none, and returns io.EOF behind the last one:
// then Result has what comes behind them.
func (t *Call) Next(ctx context.Context) (Answer, error) {
	defer t.waiters.expect()()
	for done := t.f.done; ; {
		if a, ok, err := t.take(); ok || err != nil {
			return a, err
		}
		select {
		case <-t.ready:
		case <-done:
			if t.f.err != nil {
				t.fail(t.f.err)
			}
			done = nil // its end has come
		case <-t.life.done:
			t.fail(t.life.why())
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

// Chunks yields the pieces of the answer as they come; the last pair has the error, if it ended with one.
func (t *Call) Chunks() iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		for {
			a, err := t.Next(context.Background())
			if ended(err) || !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Result waits for the end of the answer and returns what stands there: the whole answer, where it did not come in
// pieces. Pieces that were not read are passed over.
func (t *Call) Result(ctx context.Context) (Answer, error) {
	for {
		switch _, err := t.Next(ctx); {
		case ended(err):
			t.log.mu.Lock()
			defer t.log.mu.Unlock()
			return t.result, nil
		case err != nil:
			return Answer{}, err
		}
	}
}

// Close waits for the answer no longer; an agent that has not given all of it is told. It never blocks and returns nil.
func (t *Call) Close() error {
	t.fail(ErrCancelled)
	return nil
}

func (t *Call) take() (a Answer, ok bool, err error) {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.read = time.Now()
	if len(t.pieces) == 0 {
		return a, false, t.err
	}
	a = t.pieces[0]
	t.pieces = t.pieces[1:]
	t.free(len(a.Body) + frameCost)
	return a, true, nil
}

// free counts out what waits no more. It is called with the log's lock held.
func (t *Call) free(bytes int) {
	t.bytes -= bytes
	t.log.bytes -= bytes
	t.log.freed()
}

// fail ends the call here. One that has ended stays as it is, but for pieces that nobody has read.
func (t *Call) fail(err error) {
	t.log.mu.Lock()
	t.end(err)
	t.pieces = nil
	t.free(t.bytes)
	t.log.mu.Unlock()
	t.quit()
}

// end is called with the log's lock held; the one who calls it takes the call off those that are open.
func (t *Call) end(err error) {
	if t.err == nil {
		t.err = err
	}
	signal(t.ready)
}

// deliver takes in a piece, or the end. It reports whether that was the end. Behind what the mailbox has dropped
// nothing is taken in: the call is sent again on the next connection, and all its pieces come again.
func (t *Call) deliver(f *wire.Frame) bool {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	if t.log.shed || t.err != nil {
		return false
	}
	a := Answer{slices.Clone(f.Body), f.Media, f.Item, f.StatusCode}
	if f.Type == "tool.result" || f.Type == "handoff.result" {
		t.result = a
		if f.Error != nil {
			t.end(&AnswerError{agora.Errorf(agora.Code(f.Error.Code), "%s", f.Error.Message), f.StatusCode, f.Error.Path})
		} else {
			t.end(io.EOF)
		}
		return true
	}
	if f.Index != t.index { // one that came before
		return false
	}
	t.index++
	t.pieces = append(t.pieces, a)
	t.free(-len(a.Body) - frameCost)
	signal(t.ready)
	return false
}
