package ws

import (
	"bytes"
	"cmp"
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
	"agents.find":     (*conn).find,
	"card.get":        (*conn).card,
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
	"cancel":              (*conn).cancel,
	"ack":                 (*conn).ack,
	"space.join":          (*conn).join,
	"space.leave":         (*conn).leaveSpace,
	"space.create":        (*conn).create,
	"space.publish":       (*conn).publish,
	"space.publish.delta": (*conn).publishDelta,
	"space.publish.done":  (*conn).publishDone,
	"space.event.cancel":  (*conn).cancelEvent,
	"agent.refresh":       (*conn).refresh,
	"call_tool":           (*conn).callTool,
	"handoff":             (*conn).handOff,
}

// handle does what a frame says. An error is its answer.
func (c *conn) handle(f *wire.Frame) error {
	if do, ok := anonymous[f.Type]; ok {
		if c.session.Load() == nil {
			if err := c.Actor.Check(); err != nil {
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
	all, err := c.Actor.Agents(c.context())
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
	all, err := c.Actor.Spaces(c.context())
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
		if m.Kind == agora.Reply && f.RequestID == "" && m.Meta.Parent != "" {
			m.Meta.Parent = c.meant(m.To.Agent, m.Meta.Parent)
		}
	}
	if m.Part == agora.Cancel {
		m.Kind = agora.Request // the session knows whose stream it is
	}
	own(&m)
	return s.Send(c.context(), m, w)
}

// cancel gives up an open call of the connection, or a stream.
func (c *conn) cancel(s *edge.Session, f *wire.Frame) error {
	if f.N == 0 && c.cancelCall(f) {
		return nil
	}
	return c.relay(s, f)
}

// own gives m a body that is not the frame's: the text of a chunk, where that says how the chunk was spelt.
func own(m *agora.Message) {
	if m.Part != agora.Chunk {
		m.Body = bytes.Clone(m.Body)
		return
	}
	text, ok := wire.AppendText(make([]byte, 0, len(m.Body)), m.Body)
	if !ok {
		m.Body = append(text, m.Body...)
		return
	}
	m.Body, m.Media = text, agora.MediaText
}

// correlate reads what ties a request and its reply together: the name that a request has in its payload, or else beside it; of a reply
// what stands beside it counts first.
func correlate(s *edge.Session, f *wire.Frame, m *agora.Message, w *edge.Want) {
	if m.Kind == agora.Request && f.DeadlineMS == 0 && f.RequestID == "" {
		return
	}
	name := wire.RequestIDOf(f.Payload)
	switch {
	case m.Kind == agora.Reply:
		name = cmp.Or(f.RequestID, name)
		m.Meta.Parent = name
	case name != "":
		m.Meta.Request = ""
	default:
		name = f.RequestID
	}
	if f.DeadlineMS > 0 {
		m.Meta.Deadline = s.Now().Add(time.Duration(f.DeadlineMS) * time.Millisecond)
		w.Request = name
	}
}

// want is what a frame asks to be told of its message.
func want(f *wire.Frame) edge.Want {
	return edge.Want{RequestID: f.ID, Receipts: f.Receipts, Trace: f.Traceparent}
}

func (c *conn) ack(s *edge.Session, f *wire.Frame) error { return s.Ack(c.context(), f.Space, f.Seq) }

func (c *conn) join(s *edge.Session, f *wire.Frame) error {
	where := spaces.Where{HasLast: f.HasLastSeq, Last: f.LastSeq, History: f.History}
	return s.Join(c.context(), f.Space, where, func(j spaces.Joined) {
		members := make([]string, len(j.Members))
		for i, id := range j.Members {
			members[i] = string(id)
		}
		c.queue(&wire.Frame{Type: "space.joined", ID: f.ID, Space: f.Space, Members: members, Seq: j.Seq})
	})
}

func (c *conn) leaveSpace(s *edge.Session, f *wire.Frame) error {
	return s.Leave(c.context(), f.Space, func() {
		if f.ID != "" {
			c.queue(&wire.Frame{Type: "space.left", ID: f.ID, Space: f.Space})
		}
	})
}

func (c *conn) create(s *edge.Session, f *wire.Frame) error {
	err := s.Actor().CreateSpace(c.context(), f.Space)
	if err == nil {
		c.queue(&wire.Frame{Type: "space.created", ID: f.ID, Space: f.Space})
	}
	return err
}

func (c *conn) publish(s *edge.Session, f *wire.Frame) error {
	if f.Stream {
		return s.PublishStart(c.context(), f.Space, f.N, f.Data, want(f))
	}
	return s.Publish(c.context(), f.Space, f.N, f.Data, want(f))
}

func (c *conn) publishDelta(s *edge.Session, f *wire.Frame) error {
	return s.PublishPart(c.context(), f.Space, f.EventID, agora.Chunk, f.N, f.Data, edge.Want{})
}

func (c *conn) publishDone(s *edge.Session, f *wire.Frame) error {
	return s.PublishPart(c.context(), f.Space, f.EventID, agora.End, f.N, nil, edge.Want{})
}

func (c *conn) cancelEvent(s *edge.Session, f *wire.Frame) error {
	return s.CancelEvent(c.context(), f.Space, f.EventID, want(f))
}
