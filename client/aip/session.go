package aip

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
)

// Session is a session as the agent sees that was called: quests come, and responses go. One goroutine reads it at a
// time, any may write.
type Session struct {
	self, id string
	from, to string // of the first message
	stream   grpc.BidiStreamingServer[Message, Message]
	gone     chan struct{} // closed when its call has ended

	reading sync.Mutex // held while the session is read; guards the field below
	start   *Message   // the first one, until it was read

	mu      sync.Mutex // guards the fields below
	stopped bool       // STOP_QUEST has been read, or the initiator has nothing more to say
	broken  error      // why nothing more can be read, if not for that
	latest  string     // id of the message that was read last

	writing  sync.Mutex    // held while the session is written; guards the fields below
	answered bool          // something was sent
	finished chan struct{} // closed when STOP_RESPONSE was sent
}

func newSession(self string, stream grpc.BidiStreamingServer[Message, Message], start *Message) *Session {
	return &Session{
		self: self, id: start.GetSessionId(), from: start.GetSenderId(), to: start.GetReceiverId(), stream: stream, start: start,
		gone: make(chan struct{}), finished: make(chan struct{}),
	}
}

// ID returns the id of the session.
func (s *Session) ID() string { return s.id }

// From returns the id of the initiator.
func (s *Session) From() string { return s.from }

// Receive returns the next message: START_QUEST, HOLD_QUEST any number of times, and STOP_QUEST, behind which there is
// io.EOF. A message that breaks the rules of the session ends it with INVALID_ARGUMENT, which is returned, whatever the
// handler returns then.
func (s *Session) Receive() (*Message, error) {
	m, err := s.next()
	s.note(m, err)
	return m, err
}

// next is Receive without noting what comes.
func (s *Session) next() (*Message, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if m := s.start; m != nil {
		s.start = nil
		return m, nil
	}
	if stopped, broken := s.state(); stopped || broken != nil {
		return nil, cmp.Or(broken, io.EOF)
	}
	m, err := s.stream.Recv()
	if err == nil {
		err = s.follows(m)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Messages returns the messages as they come, STOP_QUEST included. Where they end with an error, so does the session,
// whatever the handler returns.
func (s *Session) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		for {
			m, err := s.Receive()
			if err != nil || !yield(m) {
				return
			}
		}
	}
}

// follows returns what is wrong with a message behind the first one.
func (s *Session) follows(m *Message) error {
	switch {
	case !same(m.GetSenderId(), s.from) || !same(m.GetReceiverId(), s.to) || !same(m.GetSessionId(), s.id):
		return status.Error(codes.InvalidArgument, "a message of a session has the sender, the receiver and the session of the first one")
	case m.GetSessionStatus() == StartQuest:
		return status.Error(codes.InvalidArgument, ErrOccupied.(*agora.Error).Message)
	case m.GetSessionStatus() != HoldQuest && m.GetSessionStatus() != StopQuest:
		return status.Errorf(codes.InvalidArgument, "%v is not for an initiator to send", m.GetSessionStatus())
	}
	return nil
}

// same reports whether a later message names what the first one does; it need not name it.
func same(name, first string) bool { return name == "" || name == first }

// note notes a message that was read, or of why none was.
func (s *Session) note(m *Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.latest = m.GetMessageId()
	}
	s.stopped = s.stopped || errors.Is(err, io.EOF) || m.GetSessionStatus() == StopQuest
	if err != nil && !errors.Is(err, io.EOF) {
		s.broken = err
	}
}

func (s *Session) state() (stopped bool, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped, s.broken
}

// Reply sends an answer behind which more come: HOLD_RESPONSE. It blocks while the initiator does not read.
func (s *Session) Reply(content ...*ContentItem) error {
	return s.Send(&Message{SessionStatus: HoldResponse, Content: content})
}

// Finish sends the last answer: STOP_RESPONSE. Its initiator ends a session: before STOP_QUEST was read this is
// [ErrNotEnded]. A handler that can't wait for that returns an error.
func (s *Session) Finish(content ...*ContentItem) error {
	return s.Send(&Message{SessionStatus: StopResponse, Content: content})
}

// Send sends an answer, HOLD_RESPONSE or STOP_RESPONSE, as it is. It fills in what is empty of its ids; that of the
// message that it answers is the one read last. [ErrFinished] behind STOP_RESPONSE, [ErrNotEnded] for one before
// STOP_QUEST was read, a status where the session has ended.
func (s *Session) Send(m *Message) error {
	switch stopped, _ := s.state(); m.GetSessionStatus() {
	case HoldResponse:
	case StopResponse:
		if !stopped {
			return ErrNotEnded
		}
	default:
		return agora.Errorf(agora.InvalidRequest, "%v is for the initiator to send", m.GetSessionStatus())
	}
	return s.write(m)
}

// write sends an answer.
func (s *Session) write(m *Message) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	select {
	case <-s.finished:
		return ErrFinished
	default:
	}
	s.mu.Lock()
	latest := s.latest
	s.mu.Unlock()
	m.SenderId = cmp.Or(m.SenderId, s.self)
	m.ReceiverId = cmp.Or(m.ReceiverId, s.from)
	m.SessionId = cmp.Or(m.SessionId, s.id)
	m.MessageId = cmp.Or(m.MessageId, rand.Text())
	m.ReplyToMessageId = cmp.Or(m.ReplyToMessageId, latest)
	if err := s.stream.Send(m); err != nil {
		return err
	}
	s.answered = true
	if m.GetSessionStatus() == StopResponse {
		close(s.finished)
	}
	return nil
}

// end ends a session whose handler has returned, and returns the status of its call. A session that is not ended yet
// waits for its initiator to do so, and drops what that says meanwhile. One that fails though it was answered gets a
// last answer that says why.
func (s *Session) end(ctx context.Context, err error) error {
	for err == nil {
		_, err = s.Receive()
	}
	stopped, broken := s.state()
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case broken != nil:
		err = broken
	case stopped && errors.Is(err, io.EOF):
		if err = s.write(&Message{SessionStatus: StopResponse}); err == nil || errors.Is(err, ErrFinished) {
			return nil
		}
	}
	st := sessionStatus(err)
	if s.isAnswered() {
		s.write(&Message{SessionStatus: StopResponse, Content: []*ContentItem{Text(st.Message())}}) // where that fails, the status says it
	}
	return st.Err()
}

// isOver reports whether the session is about to end by itself.
func (s *Session) isOver() bool {
	select {
	case <-s.finished:
		return true
	case <-s.stream.Context().Done():
		return true
	default:
		return false
	}
}

func (s *Session) isAnswered() bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.answered
}
