package party

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// aipServed is a session that somebody has with a party.
type aipServed struct {
	name   string // as it is heard
	first  *wire.AgentMessage
	stream wire.AgentService_CallAgentServer
	read   chan struct{} // closed when nothing more of it is heard

	mu     sync.Mutex // guards the field below, and what is sent
	over   bool
	status chan error // that the party ends it with
}

var errAIPCancelled = status.Error(codes.Canceled, "given up by who was called")

// CallAgent implements the protocol's service.
func (p *aipParty) CallAgent(stream wire.AgentService_CallAgentServer) error {
	p.passes()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s := &aipServed{first: first, stream: stream, read: make(chan struct{}), status: make(chan error, 1)}
	p.mu.Lock()
	p.named++
	s.name = fmt.Sprint(first.GetSessionId(), "@", p.named)
	p.served[s.name] = s
	p.mu.Unlock()
	w := s.word(agora.Start, aipBody(first.GetContent()))
	if end, has := stream.Context().Deadline(); has {
		w.Deadline = time.Until(end)
	}
	p.Put(w)
	p.work.Go(func() {
		defer close(s.read)
		p.follows(s)
	})
	select {
	case err := <-s.status:
		return err
	case <-stream.Context().Done():
		<-s.read
		if s.end(nil) { // it says to nobody why it was given up
			p.Put(s.word(agora.Abort, nil))
		}
		return stream.Context().Err()
	}
}

// follows hears the rest of a session.
func (p *aipParty) follows(s *aipServed) {
	for {
		p.passes()
		m, err := s.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			p.Put(s.word(agora.End, nil))
			return
		case err != nil:
			return
		case m.GetSessionStatus() == wire.AgentMessage_STOP_QUEST:
			p.Put(s.word(agora.End, aipBody(m.GetContent())))
			return
		}
		for _, i := range m.GetContent() {
			p.Put(s.word(agora.Chunk, []byte(i.GetText())))
		}
	}
}

// word is what is heard of the session.
func (s *aipServed) word(part agora.Part, body []byte) Word {
	return Word{Part: part, Peer: agora.AgentID(s.first.GetSenderId()), Stream: s.name, Request: s.name, Body: body}
}

// end ends the session with a status, if it has not ended.
func (s *aipServed) end(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.over = true
	s.status <- err
	return true
}

// replies says a part of an answer. What is said of a session that is over is dropped.
func (p *aipParty) replies(w Word) error {
	p.mu.Lock()
	s := p.served[w.Request]
	p.mu.Unlock()
	if s == nil {
		return agora.Errorf(agora.StreamNotFound, "there is no session %q", w.Request)
	}
	m := &wire.AgentMessage{SenderId: s.first.GetReceiverId(), ReceiverId: s.first.GetSenderId(), SessionId: s.first.GetSessionId(), SessionStatus: wire.AgentMessage_STOP_RESPONSE}
	switch w.Part {
	case agora.Whole:
		m.Content = aipContent(w.Body)
	case agora.Chunk:
		m.SessionStatus, m.Content = wire.AgentMessage_HOLD_RESPONSE, append(m.Content, aipText(w.Body))
	}
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		return nil
	}
	if err := s.stream.Send(m); err == nil && m.GetSessionStatus() == wire.AgentMessage_STOP_RESPONSE {
		s.end(nil)
	}
	return nil
}
