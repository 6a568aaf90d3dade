package aip

import (
	"cmp"

	"github.com/agora-relay/agora"
)

// QuestReader makes a stream to a mailbox of the quests of a session that a caller of AIP has opened: START_QUEST opens it, HOLD_QUEST is its chunks, and STOP_QUEST
// its end. One goroutine uses it.
type QuestReader struct {
	Rules
	cutter
}

// Read returns the parts of the stream that a quest is, of the kind Request. What they have besides is for the caller to set, but for Stream and the request's
// name, which are the session's id, and To, which is the receiver. Their bodies may be slices of raw. Content that is larger than a payload comes in chunks behind an
// empty start, or before an empty end. INVALID_REQUEST as of [Rules.Check], and where raw is malformed.
func (r *QuestReader) Read(raw []byte) ([]agora.Message, error) {
	e, err := ReadEnvelope(raw)
	if err != nil {
		return nil, err
	}
	items, err := Items(raw)
	if err != nil {
		return nil, err
	}
	if err := r.Check(&e); err != nil {
		return nil, err
	}
	part := agora.Message{Stream: r.session, To: agora.Address{Agent: agora.AgentID(r.opening.Receiver)}}
	switch e.Status {
	case AgentMessage_START_QUEST:
		part.Part, part.Meta.Request = agora.Start, r.session
		return r.with(part, items, true), nil
	case AgentMessage_STOP_QUEST:
		part.Part = agora.End
		return r.with(part, items, false), nil
	}
	return r.chunks(nil, part, items), nil
}

// with returns a part with content as its payload, or else with chunks of it behind or before.
func (c *cutter) with(part agora.Message, items []Item, first bool) []agora.Message {
	body, fits := payloadWithin(items, MaxPayload)
	if fits {
		part.Body = body
		return []agora.Message{part}
	}
	chunk := part
	chunk.Meta.Request = ""
	if first {
		return c.chunks([]agora.Message{part}, chunk, items)
	}
	return append(c.chunks(nil, chunk, items), part)
}

// QuestWriter makes the quests of a session of a message or a stream out of a node's mailbox. One goroutine uses it.
type QuestWriter struct {
	line
	join  joiner
	state questState
}

// questState is how far a session has come.
type questState uint8

const (
	questNew questState = iota
	questOpen
	questOver
)

// NewQuestWriter returns a writer of the session in which a message, or the stream that it begins, is put to a node. name is what the request is called, as of
// [SessionID]; most is how many bytes an item may have that comes in parts, [MaxMessage] if 0.
func NewQuestWriter(m *agora.Message, node agora.AgentID, name string, most int) *QuestWriter {
	return &QuestWriter{
		line: line{Message: Message{Sender: string(m.From), Receiver: string(node), Session: SessionID(m, name)}},
		join: joiner{most: cmp.Or(most, MaxMessage)},
	}
}

// Session returns the session's id.
func (w *QuestWriter) Session() string { return w.Message.Session }

// Write returns the quests, encoded, that the next part is: START_QUEST and STOP_QUEST of a whole message; of a stream START_QUEST, one HOLD_QUEST for each
// chunk, none for a part of an item behind which more may come, and STOP_QUEST, which has what the end says. What ends a stream in another way is the error that it means, and no
// quest: the call is to be cancelled. STREAM_ABORTED too for a part that does not fit, MESSAGE_TOO_LARGE for an item that is too large.
func (w *QuestWriter) Write(m *agora.Message) ([][]byte, error) {
	switch begins := m.Part <= agora.Start; {
	case m.Part == agora.Cancel || m.Part == agora.Abort:
		w.state = questOver
		return nil, Ending(m)
	case w.state == questOver, begins != (w.state == questNew):
		return nil, agora.Errorf(agora.StreamAborted, "a part does not fit its stream: its beginning is not here, or it has ended")
	}
	switch m.Part {
	case agora.Whole:
		w.state = questOver
		return [][]byte{w.say(AgentMessage_START_QUEST, ItemsOf(m)), w.say(AgentMessage_STOP_QUEST, nil)}, nil
	case agora.Start:
		w.state = questOpen
		return [][]byte{w.say(AgentMessage_START_QUEST, ItemsOf(m))}, nil
	case agora.Chunk:
		items, err := w.join.add(m)
		return w.hold(items), err
	}
	w.state = questOver
	return append(w.hold(w.join.flush()), w.say(AgentMessage_STOP_QUEST, ItemsOf(m))), nil
}

// hold returns a quest with content, none without.
func (w *QuestWriter) hold(items []Item) [][]byte {
	if len(items) == 0 {
		return nil
	}
	return [][]byte{w.say(AgentMessage_HOLD_QUEST, items)}
}

// checkSession looks at a session's id, which is the name of a stream elsewhere.
func checkSession(id []byte) error {
	return checkName("session_id", string(id), MaxSession)
}
