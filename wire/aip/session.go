package aip

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
)

// MaxSession bounds a session_id, in runes.
const MaxSession = 256

// Message is an AgentMessage that an edge writes. What is empty is left out.
type Message struct {
	Sender, Receiver, Session string
	Status                    AgentMessage_SessionStatus
	ID                        string // message_id
	Content                   []Item
}

// Append appends the message, encoded. It allocates nothing when dst has room.
func (m *Message) Append(dst []byte) []byte {
	dst = appendText(dst, fieldSender, m.Sender)
	dst = appendText(dst, fieldReceiver, m.Receiver)
	dst = appendText(dst, fieldSession, m.Session)
	if m.Status != 0 {
		dst = protowire.AppendTag(dst, fieldStatus, protowire.VarintType)
		dst = protowire.AppendVarint(dst, uint64(m.Status))
	}
	dst = appendText(dst, fieldMessageID, m.ID)
	return appendItems(dst, fieldContent, m.Content)
}

// line is what the messages have in common that one side says in a session.
type line struct {
	Message
	said int
}

// say returns the next message, encoded.
func (l *line) say(status AgentMessage_SessionStatus, items []Item) []byte {
	l.said++
	m := l.Message
	m.Status, m.Content = status, items
	m.ID = m.Session + "#" + strconv.Itoa(l.said)
	const tags = 48
	return m.Append(make([]byte, 0, len(m.Sender)+len(m.Receiver)+len(m.Session)+len(m.ID)+sizeOf(items)+tags))
}

// SessionID returns the session under which a request, or a stream, of an agent is put to a node: always the same for the same one, and no other of the tenant's goes by
// it at that time. name is what the request is called; where that is empty it goes by its stream, its ID, or its position.
func SessionID(m *agora.Message, name string) string {
	id, _, _ := strings.Cut(m.ID, "\x00") // behind that stands what the cluster adds
	for _, s := range [...]string{name, m.Stream, id} {
		if s != "" {
			return agora.EncodeToken(string(m.From)) + "/" + s
		}
	}
	return agora.EncodeToken(string(m.From)) + "/" + strconv.FormatUint(m.Seq, 10)
}

// Rules are what a session's quests have to keep to, whoever they are for. The zero value waits for the first. One goroutine uses them.
type Rules struct {
	// As is the sender that the session is taken to have: START's own, unless the caller sets it. Later messages may name either.
	As string

	opening  Route
	session  string
	opened   bool
	stopping bool
}

// Session returns the session's id; empty before its START.
func (r *Rules) Session() string { return r.session }

// Stopped reports whether the caller has said that it ends.
func (r *Rules) Stopped() bool { return r.stopping }

// Check takes the next quest. The first must be START_QUEST with a session_id, the others none, and STOP_QUEST is the last. A later one that names a sender, a receiver or a
// session must name those of START; one that it leaves out is the same. Else it is INVALID_REQUEST, in the words that AIP has for it.
func (r *Rules) Check(e *Envelope) error {
	if !r.opened {
		return r.open(e)
	}
	switch {
	case r.stopping:
		return agora.Errorf(agora.InvalidRequest, "A message follows STOP_QUEST")
	case e.Status == AgentMessage_START_QUEST:
		return agora.Errorf(agora.InvalidRequest, "START_QUEST must be the first message of its session")
	case e.Status != AgentMessage_HOLD_QUEST && e.Status != AgentMessage_STOP_QUEST:
		return agora.Errorf(agora.InvalidRequest, "A caller's message must not be %s", e.Status)
	case len(e.Session) > 0 && string(e.Session) != r.session:
		return agora.Errorf(agora.InvalidRequest, "session_id is not that of START_QUEST")
	case len(e.Sender) > 0 && string(e.Sender) != r.opening.Sender && string(e.Sender) != r.As:
		return agora.Errorf(agora.InvalidRequest, "sender_id is not that of START_QUEST")
	case len(e.Receiver) > 0 && string(e.Receiver) != r.opening.Receiver:
		return agora.Errorf(agora.InvalidRequest, "receiver_id is not that of START_QUEST")
	}
	r.stopping = e.Status == AgentMessage_STOP_QUEST
	return nil
}

func (r *Rules) open(e *Envelope) error {
	switch {
	case e.Status != AgentMessage_START_QUEST:
		return FirstNotStart()
	case len(e.Session) == 0:
		return NoSession()
	}
	if err := checkSession(e.Session); err != nil {
		return err
	}
	r.opened, r.opening, r.session = true, e.Route(), string(e.Session)
	if r.As == "" {
		r.As = r.opening.Sender
	}
	return nil
}
