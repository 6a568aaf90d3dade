package ws

import (
	"bytes"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/spaces"
	"github.com/agora-relay/agora/wire"
)

// verb is what a frame does, for the goroutine that reads: one at a time for each connection. Its error is the answer. A
// frame's slices are used again once its verb has returned: what the session keeps is cloned.
type verb struct {
	do        func(*conn, *edge.Session, *wire.Frame) error
	anonymous bool // it needs no session: then that may be nil
	moves     bool // it hands something to the log
}

var verbs = map[string]verb{
	"register":            {do: register, anonymous: true},
	"agent.register":      {do: register, anonymous: true},
	"agent.heartbeat":     {do: heartbeat, anonymous: true},
	"list":                {do: list, anonymous: true},
	"agents.find":         {do: find, anonymous: true},
	"card.get":            {do: askCard, anonymous: true},
	"space.list":          {do: listSpaces, anonymous: true},
	"send":                {do: relay, moves: true},
	"send_chunk":          {do: relay, moves: true},
	"send_end":            {do: relay, moves: true},
	"reply":               {do: relay, moves: true},
	"reply_chunk":         {do: relay, moves: true},
	"reply_end":           {do: relay, moves: true},
	"cancel":              {do: cancel, moves: true},
	"ack":                 {do: ack},
	"space.join":          {do: joinSpace},
	"space.leave":         {do: leaveSpace},
	"space.create":        {do: createSpace},
	"space.publish":       {do: publish, moves: true},
	"space.publish.delta": {do: publishDelta, moves: true},
	"space.publish.done":  {do: publishDone, moves: true},
	"space.event.cancel":  {do: cancelEvent, moves: true},
	"agent.refresh":       {do: refresh},
	"call_tool":           {do: callTool},
	"handoff":             {do: handOff},
}

// handle does what a frame says. An error is its answer.
func handle(c *conn, f *wire.Frame) error {
	v, known := verbs[f.Type]
	s := c.session()
	switch {
	case !known:
		return agora.Errorf(agora.InvalidRequest, "%s is not for agents to send", f.Type)
	case s == nil && !v.anonymous:
		return agora.Errorf(agora.InvalidRequest, "register first")
	case s == nil:
		if err := c.Actor.Check(); err != nil {
			c.Close(edge.Dismissed(err))
			return nil
		}
	}
	return v.do(c, s, f)
}

// heartbeat has nothing to do: having come is all that the frame says.
func heartbeat(c *conn, s *edge.Session, _ *wire.Frame) error {
	if s == nil {
		return nil
	}
	return s.Beat(c.out.Context())
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
	cmd := edge.Command{Verb: edge.Send, ID: f.ID, Receipts: f.Receipts, Message: f.Relay()}
	m := &cmd.Message
	if m.Part <= agora.Start && (m.Kind == agora.Reply || f.DeadlineMS > 0 || f.RequestID != "") {
		correlate(c, s, f, &cmd)
	}
	switch m.Part {
	case agora.Cancel:
		m.Kind = agora.Request // the session knows whose stream it is
	case agora.Chunk: // is its text, where that says how the chunk was spelt
		text, plain := wire.AppendText(make([]byte, 0, len(m.Body)), m.Body)
		if plain {
			m.Body, m.Media = text, agora.MediaText
		} else {
			m.Body = append(text, m.Body...)
		}
	default:
		m.Body = bytes.Clone(m.Body) // which is the frame's
	}
	return s.Do(c.out.Context(), &cmd)
}

// cancel gives up an open call of the connection, or a stream.
func cancel(c *conn, s *edge.Session, f *wire.Frame) error {
	if f.N == 0 && c.calls.Load().cancel(f) {
		return nil
	}
	return relay(c, s, f)
}

// correlate reads what ties a request and its reply together: the name that a request has in its payload, or else beside it; of a reply
// what stands beside it counts first.
func correlate(c *conn, s *edge.Session, f *wire.Frame, cmd *edge.Command) {
	m := &cmd.Message
	name := wire.RequestIDOf(f.Payload)
	switch {
	case m.Kind == agora.Reply && f.RequestID != "":
		name = f.RequestID
		m.Meta.Parent = name
	case m.Kind == agora.Reply && name != "":
		m.Meta.Parent = meant(c, m.To.Agent, name)
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
