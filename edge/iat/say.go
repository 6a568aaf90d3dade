package iat

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/iat"
)

// saying is who says an envelope.
type saying struct {
	door   *Door
	actor  *edge.Actor
	as     agora.AgentID
	trace  string // traceparent of the request that brings it; may be empty
	proves bool   // it says no part of a stream before it knows that the one before is stored
}

// message returns an envelope as a message of the core. Its body is the envelope's own bytes.
func (s *saying) message(e *iat.Envelope, root string) agora.Message {
	m := agora.Message{
		ID: e.ID, To: agora.Address{Agent: agora.AgentID(e.To)}, Body: e.Payload, Meta: agora.Meta{Parent: e.Parent, Dialect: iat.Dialect},
	}
	if e.HasTTL {
		m.Meta.Hops = uint8(min(e.TTL-1, math.MaxUint8))
	}
	if e.Deadline > 0 && (e.Type == iat.Request || e.Stream) {
		m.Meta.Deadline = s.door.now().Add(e.Deadline)
	}
	switch e.Type {
	case iat.Request:
		m.Meta.Request = e.ID
		if e.Stream {
			m.Part, m.Stream, m.Indexed = agora.Start, e.ID, s.proves
		}
	case iat.Response:
		m.Kind, m.Meta.Request = agora.Reply, e.Parent
	case iat.Chunk:
		m.Kind, m.Part, m.Indexed = agora.Reply, agora.Chunk, s.proves
		if text, ok := iat.TextBody(e.Payload); ok {
			m.Body, m.Media = text, agora.MediaText
		}
		return s.own(m, e)
	}
	m.Meta.Trace, m.Meta.Head = traceOf(e.Trace, s.trace), e.AppendHead(make([]byte, 0, e.HeadSize(s.as, root)), s.as, root)
	return m
}

// own gives a chunk its head, and room of its own for that and its body: what is kept of it is no more than is stored.
func (s *saying) own(m agora.Message, e *iat.Envelope) agora.Message {
	room := append(make([]byte, 0, len(m.Body)+e.HeadSize(s.as, "")), m.Body...)
	if n := len(room); m.Body != nil {
		m.Body, room = room[:n:n], room[n:]
	}
	m.Meta.Head = e.AppendHead(room, s.as, "")
	return m
}

// doer does commands: an actor, which waits until they are stored, or a session, in the order in which they are said.
type doer interface {
	do(ctx context.Context, c edge.Command) error
}

// tell says an envelope that nothing is waited for but that it is stored.
func (s *saying) tell(ctx context.Context, e *iat.Envelope) error {
	return s.tellBy(ctx, e, byActor{s}, edge.Command{Receipts: e.Receipts})
}

// tellBy is tell by a doer; c says what the sender wants to be told.
func (s *saying) tellBy(ctx context.Context, e *iat.Envelope, by doer, c edge.Command) error {
	if agora.AgentID(e.To) == agora.Cluster {
		return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "the cluster itself takes %s and %s alone", iat.ActionRegister, iat.ActionApproval), Path: "/header/to", ID: e.ID}
	}
	root, err := s.root(ctx, e)
	if err != nil {
		return err
	}
	c.Verb, c.Message = edge.Send, s.message(e, root)
	switch {
	case e.Type == iat.Response:
		c.Verb = edge.Answer
		return s.respond(ctx, e, by, c)
	case e.Type == iat.Chunk:
		c.Verb = edge.Answer
		err := by.do(ctx, c)
		if err != nil && agora.AsError(err).Code == agora.StreamNotFound { // it was refused before it was counted
			err = cmp.Or(s.actor.SpendBeside(s.as), err)
		}
		return err
	case e.Type == iat.Notification && e.Parent != "" && e.Action == iat.ActionStreamEnd:
		c.Message.Part, c.Verb = agora.End, edge.Answer
		return orPlain(ctx, by, c, by.do(ctx, c))
	case e.Type == iat.Notification && e.Parent != "" && e.Action == iat.ActionCancel:
		c.Message.Part, c.Message.Stream = agora.Cancel, e.Parent
		return orPlain(ctx, by, c, s.cancel(ctx, by, c))
	}
	return by.do(ctx, c)
}

// cancel gives up a stream of either side, or a request of its own that was POSTed.
func (s *saying) cancel(ctx context.Context, by doer, c edge.Command) error {
	done, err := s.actor.CancelCall(ctx, s.as, c.Message.To.Agent, c.Message.Stream)
	if done || err != nil {
		return err
	}
	return by.do(ctx, c)
}

// orPlain says what was to end a stream, and was answered by err: where none of its name is open it is a notification
// like any.
func orPlain(ctx context.Context, by doer, c edge.Command, err error) error {
	if e, ok := errors.AsType[*agora.Error](err); !ok || e.Code != agora.StreamNotFound && e.Code != agora.Unavailable {
		return err
	}
	c.Verb = edge.Send
	c.Message.Part, c.Message.Stream, c.Message.Meta.Parent = agora.Whole, "", ""
	return by.do(ctx, c)
}

// respond says a response, with which an execute is over.
func (s *saying) respond(ctx context.Context, e *iat.Envelope, by doer, c edge.Command) error {
	if err := by.do(ctx, c); err != nil {
		return err
	}
	s.door.done(ctx, presence.Execute{Tenant: s.tenant(), Callee: s.as, Caller: agora.AgentID(e.To), Request: e.Parent})
	return nil
}

// done says that a task is done: its answer is stored. Where presence can't be told now, the task ends by itself.
func (d *Door) done(ctx context.Context, task presence.Execute) {
	if err := d.cfg.Tools.Done(ctx, task); err != nil {
		d.cfg.Log.Debug("a task that is done stays open", "agent", task.Callee, "err", err)
	}
}

// root returns the workspace that an agent has declared, where an envelope tells its addressee of it.
func (s *saying) root(ctx context.Context, e *iat.Envelope) (string, error) {
	if e.Type != iat.Request {
		return "", nil
	}
	card, err := s.actor.Directory().Own(ctx, s.as)
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentNotFound {
		return "", nil // it has declared nothing
	}
	if err != nil {
		return "", err
	}
	return iat.RootOf(&card), nil
}

func (s *saying) tenant() string { return s.actor.Principal().Tenant }

// byActor does commands of an agent whose session, if it has one, may be anywhere.
type byActor struct{ *saying }

func (b byActor) do(ctx context.Context, c edge.Command) error {
	_, err := b.actor.Do(ctx, b.as, c)
	return err
}

// wait returns how long the answer to a request is waited for.
func (d *Door) wait(e *iat.Envelope) time.Duration {
	if e.Deadline > 0 {
		return min(e.Deadline, d.cfg.MaxWait)
	}
	return d.cfg.MaxWait
}

// callOf returns a request as a call, which is done once under the envelope's id.
func (s *saying) callOf(e *iat.Envelope) call.Request {
	m := s.message(e, "")
	m.Meta.Deadline = time.Time{} // by Within
	return call.Request{Name: e.ID, Within: s.door.wait(e), Message: m, Complete: func(ctx context.Context, m *agora.Message) error {
		root, err := s.root(ctx, e)
		if root != "" {
			m.Meta.Head = e.AppendHead(make([]byte, 0, e.HeadSize(s.as, root)), s.as, root)
		}
		return err
	}}
}
