package aip

import (
	"cmp"

	"github.com/agora-relay/agora"
)

// ResponseWriter makes the responses of a session, for a caller of AIP, of the replies of an agent with a mailbox: HOLD_RESPONSE, and one STOP_RESPONSE behind the caller's STOP_QUEST,
// which is the last whole reply, or the end of a streamed one, if that comes then. One goroutine at a time uses it.
type ResponseWriter struct {
	line
	most     int
	streams  map[string]*joiner // replies that have begun and not ended
	stopped  bool
	answered bool
	over     bool
}

// NewResponseWriter returns a writer of what an agent answers to a caller. most is as that of [NewQuestWriter].
func NewResponseWriter(agent, caller, session string, most int) *ResponseWriter {
	return &ResponseWriter{
		line: line{Message: Message{Sender: agent, Receiver: caller, Session: session}}, most: cmp.Or(most, MaxMessage), streams: map[string]*joiner{},
	}
}

// Write returns the responses, encoded, that the next part of a reply is; none for the start of a stream that says nothing, and for a part of an item behind which more may come. A reply
// that was given up is the error that it means: see Fail. Nothing is written behind STOP_RESPONSE.
func (w *ResponseWriter) Write(m *agora.Message) ([][]byte, error) {
	if w.over {
		return nil, nil
	}
	switch m.Part {
	case agora.Whole:
		return w.respond(nil, ItemsOf(m), true), nil
	case agora.Start:
		w.streams[m.Stream] = &joiner{most: w.most}
		return w.respond(nil, ItemsOf(m), false), nil
	case agora.Chunk, agora.End:
	default:
		delete(w.streams, m.Stream)
		return nil, Ending(m)
	}
	join := w.streams[m.Stream]
	if join == nil {
		return nil, agora.Errorf(agora.StreamAborted, "the beginning of the reply is not here")
	}
	if m.Part == agora.End {
		delete(w.streams, m.Stream)
		return w.respond(w.respond(nil, join.flush(), false), ItemsOf(m), true), nil
	}
	items, err := join.add(m)
	return w.respond(nil, items, false), err
}

// respond appends the response with some content, if any. What ends a reply ends the session, if nothing else is awaited.
func (w *ResponseWriter) respond(all [][]byte, items []Item, ends bool) [][]byte {
	switch {
	case ends && w.stopped && len(w.streams) == 0:
		return append(all, w.last(items))
	case len(items) > 0:
		w.answered = true
		return append(all, w.say(AgentMessage_HOLD_RESPONSE, items))
	case ends:
		w.answered = true // by a reply that says nothing
	}
	return all
}

func (w *ResponseWriter) last(items []Item) []byte {
	w.over = true
	return w.say(AgentMessage_STOP_RESPONSE, items)
}

// Stop says that the caller's STOP_QUEST has come. It returns STOP_RESPONSE where the agent has answered and no streamed reply is open; else that is for a later
// reply to be, and where nothing has come yet, for which the caller of Stop waits a while (Waits), for End.
func (w *ResponseWriter) Stop() [][]byte {
	w.stopped = true
	if w.answered && len(w.streams) == 0 {
		return w.End()
	}
	return nil
}

// Waits reports whether the session has been stopped, and nothing has come by which it would end.
func (w *ResponseWriter) Waits() bool { return w.stopped && !w.over && len(w.streams) == 0 }

// End returns STOP_RESPONSE without content, if the session has not ended: for one whose agent was waited for, or will say no more.
func (w *ResponseWriter) End() [][]byte {
	if w.over {
		return nil
	}
	return [][]byte{w.last(nil)}
}

// Fail returns the STOP_RESPONSE with a text that comes before the status of a session that ends badly: none where the caller has had no answer, or has had a STOP_RESPONSE.
// Nothing follows it.
func (w *ResponseWriter) Fail(text string) [][]byte {
	over := w.over
	if w.over = true; over || w.said == 0 {
		return nil
	}
	return [][]byte{w.last([]Item{{Mode_TEXT, []byte(text)}})}
}

// Over reports whether the session has had its last response.
func (w *ResponseWriter) Over() bool { return w.over }

// ResponseReader makes the reply to a message or a stream of what a node responds to it: a streamed reply, or a whole one where STOP_RESPONSE is all that comes. One
// goroutine uses it.
type ResponseReader struct {
	// To is who has asked, and Request what that calls the request: the reply's name, and that of its stream.
	To      agora.AgentID
	Request string

	cutter
	begun, over bool
}

// Read returns the parts of the reply that a response is, of the kind Reply: the first HOLD_RESPONSE opens its stream, each is chunks, and STOP_RESPONSE is its end, with its
// content as payload. Their bodies may be slices of raw. A response that the protocol does not have there is STREAM_ABORTED.
func (r *ResponseReader) Read(raw []byte) ([]agora.Message, error) {
	e, err := ReadEnvelope(raw)
	if err != nil {
		return nil, badResponse(err)
	}
	items, err := Items(raw)
	switch {
	case err != nil:
		return nil, badResponse(err)
	case r.over:
		return nil, agora.Errorf(agora.StreamAborted, "the node has responded behind STOP_RESPONSE")
	case e.Status == AgentMessage_STOP_RESPONSE:
		return r.stop(items), nil
	case e.Status != AgentMessage_HOLD_RESPONSE:
		return nil, agora.Errorf(agora.StreamAborted, "the node has responded with %s", e.Status)
	}
	return r.chunks(r.begin(), r.part(agora.Chunk), items), nil
}

// badResponse says that it is the node that is at fault.
func badResponse(err error) error {
	return &agora.Error{Code: agora.StreamAborted, Message: "the node's response is malformed", Cause: err}
}

// part returns a part of the reply.
func (r *ResponseReader) part(p agora.Part) agora.Message {
	m := agora.Message{Kind: agora.Reply, Part: p, To: agora.Address{Agent: r.To}, Meta: agora.Meta{Parent: r.Request}}
	if p != agora.Whole {
		m.Stream = r.Request
	}
	if p <= agora.Start {
		m.Meta.Request = r.Request
	}
	return m
}

// begin returns the start of the reply's stream, nothing where that is open.
func (r *ResponseReader) begin() []agora.Message {
	if r.begun {
		return nil
	}
	r.begun = true
	return []agora.Message{r.part(agora.Start)}
}

// stop returns the end of the reply.
func (r *ResponseReader) stop(items []Item) []agora.Message {
	r.over = true
	body, fits := payloadWithin(items, MaxPayload)
	if fits && !r.begun {
		m := r.part(agora.Whole)
		m.Body = body
		return []agora.Message{m}
	}
	all := r.begin()
	end := r.part(agora.End)
	if fits {
		end.Body = body
	} else {
		all = r.chunks(all, r.part(agora.Chunk), items)
	}
	return append(all, end)
}

// End returns what ends the reply when the node's call has ended well without STOP_RESPONSE: the end of its stream, or a whole reply that says nothing.
func (r *ResponseReader) End() []agora.Message {
	if r.over {
		return nil
	}
	return r.stop(nil)
}

// Fail returns what tells that the node's call has failed: the abort of the reply's stream with a code, or of the request where none has begun. ok is false where the reply has ended.
func (r *ResponseReader) Fail(code agora.Code) (m agora.Message, ok bool) {
	if r.over {
		return m, false
	}
	r.over = true
	m = agora.AbortBody{Code: code, Request: r.Request}.Message()
	m.Kind, m.To, m.Meta.Parent = agora.Reply, agora.Address{Agent: r.To}, r.Request
	if r.begun {
		m.Stream = r.Request
	}
	return m, true
}

// Over reports whether the reply has come to its end.
func (r *ResponseReader) Over() bool { return r.over }
