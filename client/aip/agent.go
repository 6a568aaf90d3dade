package aip

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/agora-relay/agora/wire/aip"
)

// Agent is an agent: it answers sessions that others begin with it, and begins sessions and calls tools itself. One
// that only does the latter need neither be started nor registered. Its methods may be called at the same time, but for
// Handle, which is called before Start.
type Agent struct {
	*node
	handler   func(context.Context, *Session) error
	inquiries chan inquiry // what came for nobody in particular

	mu       sync.Mutex // guards the field below
	sessions map[sessionKey]*Session
}

// sessionKey names a session: ids are their initiators' own.
type sessionKey struct{ from, id string }

// inquiry is a message that came, and its session.
type inquiry struct {
	session *Session
	message *Message
}

// NewAgent returns an agent, which connects to nothing yet. Its errors are those of the configuration. The caller owes
// it a call of Close, or of Serve.
func NewAgent(cfg Config) (*Agent, error) {
	n, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	a := &Agent{node: n, inquiries: make(chan inquiry), sessions: map[sessionKey]*Session{}}
	a.handler = a.offer
	n.attach = func(s *grpc.Server) { wire.RegisterAgentServiceServer(s, agentService{agent: a}) }
	n.info = func(address string) *Peer { return agentPeer(a.infoAt(address)) }
	return a, nil
}

// Handle has f called for each session that another agent begins with this one, at the same time. f reads what comes
// and replies; when it returns nil, the session is ended by STOP_RESPONSE once its initiator has asked for that. An
// error ends the session at once: as the status of the call, that of an [agora.Error] or of gRPC that is in it, else
// ABORTED, with the text as a last answer where there have been others. Statuses for which gateways would deregister
// the agent become ABORTED. The context ends when the initiator gives up, and with the agent.
func (a *Agent) Handle(f func(ctx context.Context, s *Session) error) { a.handler = f }

// Info returns what the agent registers with.
func (a *Agent) Info() *AgentInfo { return a.infoAt(a.Address()) }

func (a *Agent) infoAt(address string) *AgentInfo {
	return &AgentInfo{
		AgentId: a.cfg.ID, Address: address, Name: a.cfg.Name, Domain: a.cfg.Domain, Description: a.cfg.Description, Version: a.cfg.Version,
		InputMode: slices.Clone(a.cfg.Input), OutputMode: slices.Clone(a.cfg.Output), Skills: slices.Clone(a.cfg.Skills),
	}
}

// NewMessage returns a message to an agent, with ids of its sender and of its own: a START_QUEST, until another status
// is set.
func (a *Agent) NewMessage(to string, content ...*ContentItem) *Message {
	return &Message{SenderId: a.cfg.ID, ReceiverId: to, MessageId: rand.Text(), Content: content}
}

// Receive returns the next message that came in any session, and the session to reply to, where Handle was not called.
// Of one session they come in order. It blocks until there is one. Anyone who takes messages this way ends each session
// with Finish when its STOP_QUEST has come.
func (a *Agent) Receive(ctx context.Context) (*Session, *Message, error) {
	select {
	case i := <-a.inquiries:
		i.session.note(i.message, nil)
		return i.session, i.message, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-a.life.Done():
		return nil, nil, ErrClosed
	}
}

// offer is the handler of an agent that has none: it gives what comes to who calls Receive, and waits for the end.
func (a *Agent) offer(ctx context.Context, s *Session) error {
	for stopped := false; !stopped; {
		m, err := s.next()
		if err != nil {
			s.note(nil, err)
			break
		}
		select {
		case a.inquiries <- inquiry{s, m}:
			stopped = m.GetSessionStatus() == StopQuest
		case <-s.finished:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if _, broken := s.state(); broken != nil {
		return broken
	}
	select {
	case <-s.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// agentService serves the sessions of an agent.
type agentService struct {
	wire.UnimplementedAgentServiceServer
	agent *Agent
}

// CallAgent implements the protocol's method.
func (s agentService) CallAgent(stream grpc.BidiStreamingServer[Message, Message]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return errEmpty
	}
	if err != nil {
		return err
	}
	if !s.agent.is(first.GetReceiverId()) {
		return errNoReceiver
	}
	if err := opens(first.GetSessionStatus(), first.GetSessionId()); err != nil {
		return err
	}
	session := newSession(s.agent.cfg.ID, stream, first)
	if err := s.agent.enter(stream.Context(), session); err != nil {
		return err
	}
	defer s.agent.exit(session)
	return session.end(stream.Context(), s.agent.handler(stream.Context(), session))
}

// What a call between agents is refused with that does not begin as it should.
var errEmpty = wire.Status(wire.Empty()).Err()

// opens returns what is wrong with the first message of a call.
func opens(s SessionStatus, session string) error {
	if s != StartQuest {
		return wire.Status(wire.FirstNotStart()).Err()
	}
	if session == "" {
		return wire.Status(wire.NoSession()).Err()
	}
	return nil
}

// enter notes a session that begins. One that is about to end makes room for the next of its id.
func (a *Agent) enter(ctx context.Context, s *Session) error {
	for {
		old, err := a.admit(s)
		if old == nil {
			return err
		}
		if !old.isOver() {
			return status.Errorf(codes.FailedPrecondition, "Session [%s] is occupied: START_QUEST is sent only while it is free", s.id)
		}
		select {
		case <-old.gone:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// admit notes a session, unless there is one of its id, which it returns.
func (a *Agent) admit(s *Session) (old *Session, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.sessions[s.key()]; old != nil {
		return old, nil
	}
	if len(a.sessions) >= a.cfg.MaxSessions {
		return nil, status.Errorf(codes.ResourceExhausted, "the agent has %d sessions, as many as it serves at a time", len(a.sessions))
	}
	a.sessions[s.key()] = s
	return nil, nil
}

func (a *Agent) exit(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s.key())
	close(s.gone)
}

func (s *Session) key() sessionKey { return sessionKey{s.from, s.id} }
