package ws

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/spaces"
	"github.com/agora-relay/agora/wire"
)

// anonymous are the frames that need no session.
var anonymous = map[string]func(*conn, *wire.Frame) error{
	"register":        (*conn).register,
	"agent.register":  (*conn).register,
	"agent.heartbeat": func(*conn, *wire.Frame) error { return nil }, // having come is all it says
	"list":            (*conn).list,
	"space.list":      (*conn).listSpaces,
}

// verbs are the frames of an agent. A frame's slices are used again once its
// verb has returned: what the session keeps is cloned.
var verbs = map[string]func(*conn, *edge.Session, *wire.Frame) error{
	"send":                (*conn).relay,
	"send_chunk":          (*conn).relay,
	"send_end":            (*conn).relay,
	"reply":               (*conn).relay,
	"reply_chunk":         (*conn).relay,
	"reply_end":           (*conn).relay,
	"cancel":              (*conn).relay,
	"ack":                 (*conn).ack,
	"space.join":          (*conn).join,
	"space.leave":         (*conn).leaveSpace,
	"space.create":        (*conn).create,
	"space.publish":       (*conn).publish,
	"space.publish.delta": (*conn).publishDelta,
	"space.publish.done":  (*conn).publishDone,
	"space.event.cancel":  (*conn).cancelEvent,
	"agent.refresh":       (*conn).refresh,
}

// handle does what a frame says. An error is its answer.
func (c *conn) handle(f *wire.Frame) error {
	if do, ok := anonymous[f.Type]; ok {
		if c.session.Load() == nil {
			if err := c.actor.Check(); err != nil {
				c.Close(edge.Dismissed(err))
				return nil
			}
		}
		return do(c, f)
	}
	do, ok := verbs[f.Type]
	if !ok {
		return agora.Errorf(agora.InvalidRequest, "%s is not for agents to send", f.Type)
	}
	s := c.session.Load()
	if s == nil {
		return agora.Errorf(agora.InvalidRequest, "register first")
	}
	return do(c, s, f)
}

func (c *conn) refresh(s *edge.Session, f *wire.Frame) error {
	ends, err := s.Refresh(c.context(), f.Token)
	if err != nil {
		return err
	}
	c.queue(&wire.Frame{Type: "agent.refreshed", ID: f.ID, Expires: unix(ends)})
	return nil
}

// unix returns a time in whole seconds; 0 for none.
func unix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.Unix(), 1))
}

func (c *conn) list(f *wire.Frame) error {
	all, err := c.actor.Agents(c.context())
	if err != nil {
		return err
	}
	listed := make([]wire.ListedAgent, len(all))
	for i, a := range all {
		listed[i] = wire.ListedAgent{
			ID: string(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Format(time.RFC3339),
		}
	}
	c.queue(&wire.Frame{Type: "agents", ID: f.ID, Agents: listed})
	return nil
}

func (c *conn) listSpaces(f *wire.Frame) error {
	all, err := c.actor.Spaces(c.context())
	if err != nil {
		return err
	}
	listed := make([]wire.ListedSpace, len(all))
	for i, s := range all {
		listed[i] = wire.ListedSpace{ID: s.Name, Type: s.Type, MemberCount: s.Members}
	}
	c.queue(&wire.Frame{Type: "space.list", ID: f.ID, Spaces: listed})
	return nil
}

func (c *conn) relay(s *edge.Session, f *wire.Frame) error {
	m, w := f.Relay(), want(f)
	if m.Part == agora.Whole || m.Part == agora.Start {
		correlate(s, f, &m, &w)
	}
	if m.Part == agora.Cancel {
		m.Kind = agora.Request // the session knows whose stream it is
	}
	m.Body = bytes.Clone(m.Body)
	return s.Send(c.context(), m, w)
}

// correlate reads what ties a request and its reply together.
func correlate(s *edge.Session, f *wire.Frame, m *agora.Message, w *edge.Want) {
	if m.Kind == agora.Reply {
		m.Meta.Parent = wire.RequestIDOf(f.Payload)
	}
	if f.DeadlineMS > 0 {
		m.Meta.Deadline = s.Now().Add(time.Duration(f.DeadlineMS) * time.Millisecond)
		w.Request = wire.RequestIDOf(f.Payload)
	}
}

// want is what a frame asks to be told of its message.
func want(f *wire.Frame) edge.Want {
	return edge.Want{RequestID: f.ID, Receipts: f.Receipts, Trace: f.Traceparent}
}

func (c *conn) ack(s *edge.Session, f *wire.Frame) error { return s.Ack(c.context(), f.Space, f.Seq) }

func (c *conn) join(s *edge.Session, f *wire.Frame) error {
	c.order.Lock()
	defer c.order.Unlock()
	j, err := s.Join(c.context(), f.Space, spaces.Where{HasLast: f.HasLastSeq, Last: f.LastSeq, History: f.History})
	if err != nil {
		return err
	}
	members := make([]string, len(j.Members))
	for i, id := range j.Members {
		members[i] = string(id)
	}
	c.queue(&wire.Frame{Type: "space.joined", ID: f.ID, Space: f.Space, Members: members, Seq: j.Seq})
	return nil
}

func (c *conn) leaveSpace(s *edge.Session, f *wire.Frame) error {
	c.order.Lock()
	defer c.order.Unlock()
	err := s.Leave(c.context(), f.Space)
	if err == nil && f.ID != "" {
		c.queue(&wire.Frame{Type: "space.left", ID: f.ID, Space: f.Space})
	}
	return err
}

func (c *conn) create(s *edge.Session, f *wire.Frame) error {
	err := s.CreateSpace(c.context(), f.Space)
	if err == nil {
		c.queue(&wire.Frame{Type: "space.created", ID: f.ID, Space: f.Space})
	}
	return err
}

func (c *conn) publish(s *edge.Session, f *wire.Frame) error {
	data, err := wire.EventData(f.Data, s.Agent(), s.Now().Unix())
	if err != nil {
		return err
	}
	key := edge.EventKey(f.ID, f.N, f.Data)
	if f.Stream {
		return s.PublishStart(c.context(), f.Space, key, f.N, data, want(f))
	}
	parts := wire.SplitText(data, c.door.cfg.DeltaThreshold)
	if parts == nil {
		parts = []json.RawMessage{data}
	}
	return s.Publish(c.context(), f.Space, key, f.N, parts, want(f))
}

func (c *conn) publishDelta(s *edge.Session, f *wire.Frame) error {
	data, err := wire.DeltaData(f.Data, s.Agent())
	if err != nil {
		return err
	}
	return s.PublishPart(c.context(), f.Space, f.EventID, agora.Chunk, f.N, data)
}

func (c *conn) publishDone(s *edge.Session, f *wire.Frame) error {
	return s.PublishPart(c.context(), f.Space, f.EventID, agora.End, f.N, nil)
}

func (c *conn) cancelEvent(s *edge.Session, f *wire.Frame) error {
	return s.CancelEvent(c.context(), f.Space, f.EventID, want(f))
}
