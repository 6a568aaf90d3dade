package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
)

// Event is something that happened in a space: what a member published, or,
// if Roster is set, a change of its members. Large and streamed events come in
// parts: then Stream is set, Data is that of the first part, and Chunks
// and Text have the text; such an event must be read to its end, or closed.
type Event struct {
	Space       string
	ID          string          // of an event in parts
	From        string          // who published it
	Data        json.RawMessage // a JSON object, byte for byte; nil for a roster
	Roster      *Roster         // nil for what was published
	Stream      bool            // parts may follow
	Seq         uint64          // position in the space
	Redelivered bool            // it may have been given to an earlier run of this program
	Traceparent string          // the trace that it belongs to, as W3C Trace Context writes it; empty: none

	s      *Space
	ticket uint64
	in     *inStream // nil unless Stream
}

// Roster is a change of a space's members.
type Roster struct {
	Members []string // all of them, after the change; nil in a large space (see Space.Members)
	Joined  string   // who came, or empty
	Left    string   // who went, or empty
}

// Chunks yields the text as it comes: the parts of a streamed event, or the
// data's "text" where it has one. A stream that has no normal end yields an error last.
func (e *Event) Chunks() iter.Seq2[string, error] {
	if e.in != nil {
		return e.in.all(context.Background())
	}
	return func(yield func(string, error) bool) {
		if text, ok := textOf(e.Data); ok {
			yield(text, nil)
		}
	}
}

// Next returns the next part of a streamed event's text, and io.EOF after the
// last; an event that is not streamed has no parts.
func (e *Event) Next(ctx context.Context) (string, error) {
	if e.in == nil {
		return "", io.EOF
	}
	return e.in.next(ctx)
}

// Text returns the whole text, once all of it has come, or "" where there is none.
func (e *Event) Text(ctx context.Context) (string, error) {
	if e.in != nil {
		return e.in.text(ctx)
	}
	text, _ := textOf(e.Data)
	return text, nil
}

// Whole returns the data with the whole text in it, once all of it has come,
// as if the event had not been cut into parts: byte for byte. It takes what Chunks would yield.
func (e *Event) Whole(ctx context.Context) (json.RawMessage, error) {
	if e.in == nil {
		return e.Data, nil
	}
	text, err := e.in.whole(ctx)
	if err != nil {
		return nil, err
	}
	return withText(e.Data, text), nil
}

// withText replaces the text of an event's data by another JSON string.
func withText(data json.RawMessage, text []byte) json.RawMessage {
	old, ok := member(data, "text")
	if !ok {
		return withMember(data, "text", text)
	}
	at := cap(data) - cap(old) // old is a slice of data
	return slices.Concat(data[:at], text, data[at+len(old):])
}

// Close gives up what has not been read of an event in parts; the edge sends no more of it.
func (e *Event) Close() error {
	if e.in != nil {
		e.in.close(streamKey{id: e.ID})
	}
	return nil
}

// taken notes that the application has the event.
func (e *Event) taken() {
	e.s.log.bytes -= e.size()
	if e.in != nil {
		e.in.hand()
	}
}

func (e *Event) size() int { return len(e.Data) + frameCost }
