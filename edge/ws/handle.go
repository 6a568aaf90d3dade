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

// A verb does what a frame says, for the goroutine that reads: one at a time for each connection. Its error is the answer. A frame's
// slices are used again once its verb has returned: what the session keeps is cloned.

// anonymous are the frames that need no session.
var anonymous = map[string]func(*conn, *wire.Frame) error{
	"register":        register,
	"agent.register":  register,
	"agent.heartbeat": heartbeat,
	"list":            list,
	"agents.find":     find,
	"card.get":        askCard,
	"space.list":      listSpaces,
}

// bound are the frames of an agent.
var bound = map[string]func(*conn, *edge.Session, *wire.Frame) error{
	"send":                relay,
	"send_chunk":          relay,
	"send_end":            relay,
	"reply":               relay,
	"reply_chunk":         relay,
	"reply_end":           relay,
	"cancel":              cancel,
	"ack":                 ack,
	"space.join":          joinSpace,
	"space.leave":         leaveSpace,
	"space.create":        createSpace,
	"space.publish":       publish,
	"space.publish.delta": publishDelta,
	"space.publish.done":  publishDone,
	"space.event.cancel":  cancelEvent,
	"agent.refresh":       refresh,
	"call_tool":           callTool,
	"handoff":             handOff,
}

// handle does what a frame says. An error is its answer.
func handle(c *conn, f *wire.Frame) error {
	if do, ok := anonymous[f.Type]; ok {
		if c.session() == nil {
			if err := c.Actor.Check(); err != nil {
				c.Close(edge.Dismissed(err))
				return nil
			}
		}
		return do(c, f)
	}
	do, ok := bound[f.Type]
	if !ok {
		return agora.Errorf(agora.InvalidRequest, "%s is not for agents to send", f.Type)
	}
	s := c.session()
	if s == nil {
		return agora.Errorf(agora.InvalidRequest, "register first")
	}
	return do(c, s, f)
}

// heartbeat has nothing to do: having come is all that the frame says.
func heartbeat(c *conn, _ *wire.Frame) error {
	if s := c.session(); s != nil {
		return s.Beat(c.out.Context())
	}
	return nil
}

func refresh(c *conn, s *edge.Session, f *wire.Frame) error {
	ends, err := s.Refresh(c.out.Context(), f.Token)
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

func relay(c *conn, s *edge.Session, f *wire.Frame) error {
	cmd := commandOf(edge.Send, f)
	cmd.Message = f.Relay()
	m := &cmd.Message
	if m.Part == agora.Whole || m.Part == agora.Start {
		correlate(s, f, &cmd)
		if m.Kind == agora.Reply && f.RequestID == "" && m.Meta.Parent != "" {
			m.Meta.Parent = meant(c, m.To.Agent, m.Meta.Parent)
		}
	}
	if m.Part == agora.Cancel {
		m.Kind = agora.Request // the session knows whose stream it is
	}
	own(m)
	return s.Do(c.out.Context(), &cmd)
}

// cancel gives up an open call of the connection, or a stream.
func cancel(c *conn, s *edge.Session, f *wire.Frame) error {
	if f.N == 0 && c.calls.Load().cancel(f) {
		return nil
	}
	return relay(c, s, f)
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
func correlate(s *edge.Session, f *wire.Frame, cmd *edge.Command) {
	m := &cmd.Message
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
		cmd.Request = name
	}
}

// commandOf is a frame as a command, but for what its verb needs.
func commandOf(verb edge.Verb, f *wire.Frame) edge.Command {
	return edge.Command{Verb: verb, ID: f.ID, Receipts: f.Receipts, Trace: f.Traceparent, Space: f.Space, Event: f.EventID, Data: f.Data, N: f.N}
}

func ack(c *conn, s *edge.Session, f *wire.Frame) error {
	return s.Do(c.out.Context(), &edge.Command{Verb: edge.Ack, Space: f.Space, Seq: f.Seq})
}

func joinSpace(c *conn, s *edge.Session, f *wire.Frame) error {
	cmd := commandOf(edge.Join, f)
	cmd.Where = spaces.Where{HasLast: f.HasLastSeq, Last: f.LastSeq, History: f.History}
	cmd.Done = func(o edge.Outcome) {
		answer := &wire.Frame{Type: "space.joined", ID: f.ID, Space: f.Space, Seq: o.Joined.Seq}
		answer.Members, answer.LeftOut = members(c, s.Agent(), o.Joined.Members)
		c.queue(answer)
	}
	return s.Do(c.out.Context(), &cmd)
}

func leaveSpace(c *conn, s *edge.Session, f *wire.Frame) error {
	cmd := commandOf(edge.Leave, f)
	cmd.Done = func(edge.Outcome) {
		if f.ID != "" {
			c.queue(&wire.Frame{Type: "space.left", ID: f.ID, Space: f.Space})
		}
	}
	return s.Do(c.out.Context(), &cmd)
}

func createSpace(c *conn, s *edge.Session, f *wire.Frame) error {
	err := s.Actor().CreateSpace(c.out.Context(), f.Space)
	if err == nil {
		c.queue(&wire.Frame{Type: "space.created", ID: f.ID, Space: f.Space})
	}
	return err
}

func publish(c *conn, s *edge.Session, f *wire.Frame) error {
	cmd := commandOf(edge.Publish, f)
	if f.Stream {
		cmd.Verb = edge.OpenEvent
	}
	return s.Do(c.out.Context(), &cmd)
}

func publishDelta(c *conn, s *edge.Session, f *wire.Frame) error {
	return s.Do(c.out.Context(), &edge.Command{Verb: edge.ContinueEvent, Space: f.Space, Event: f.EventID, Part: agora.Chunk, N: f.N, Data: f.Data})
}

func publishDone(c *conn, s *edge.Session, f *wire.Frame) error {
	return s.Do(c.out.Context(), &edge.Command{Verb: edge.ContinueEvent, Space: f.Space, Event: f.EventID, Part: agora.End, N: f.N})
}

func cancelEvent(c *conn, s *edge.Session, f *wire.Frame) error {
	cmd := commandOf(edge.CancelEvent, f)
	return s.Do(c.out.Context(), &cmd)
}
