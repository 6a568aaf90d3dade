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

// verbs do what frames say, one after the other, for the goroutine that reads.
type verbs struct {
	*conn
	calls *calls // nil until it makes one; the connection's mu guards it
}

// anonymous are the frames that need no session.
var anonymous = map[string]func(*verbs, *wire.Frame) error{
	"register":        (*verbs).register,
	"agent.register":  (*verbs).register,
	"agent.heartbeat": (*verbs).heartbeat,
	"list":            (*verbs).list,
	"agents.find":     (*verbs).find,
	"card.get":        (*verbs).card,
	"space.list":      (*verbs).listSpaces,
}

// bound are the frames of an agent. A frame's slices are used again once its
// verb has returned: what the session keeps is cloned.
var bound = map[string]func(*verbs, *edge.Session, *wire.Frame) error{
	"send":                (*verbs).relay,
	"send_chunk":          (*verbs).relay,
	"send_end":            (*verbs).relay,
	"reply":               (*verbs).relay,
	"reply_chunk":         (*verbs).relay,
	"reply_end":           (*verbs).relay,
	"cancel":              (*verbs).cancel,
	"ack":                 (*verbs).ack,
	"space.join":          (*verbs).join,
	"space.leave":         (*verbs).leaveSpace,
	"space.create":        (*verbs).create,
	"space.publish":       (*verbs).publish,
	"space.publish.delta": (*verbs).publishDelta,
	"space.publish.done":  (*verbs).publishDone,
	"space.event.cancel":  (*verbs).cancelEvent,
	"agent.refresh":       (*verbs).refresh,
	"call_tool":           (*verbs).callTool,
	"handoff":             (*verbs).handOff,
}

// handle does what a frame says. An error is its answer.
func (v *verbs) handle(f *wire.Frame) error {
	if do, ok := anonymous[f.Type]; ok {
		if v.session.Load() == nil {
			if err := v.Actor.Check(); err != nil {
				v.Close(edge.Dismissed(err))
				return nil
			}
		}
		return do(v, f)
	}
	do, ok := bound[f.Type]
	if !ok {
		return agora.Errorf(agora.InvalidRequest, "%s is not for agents to send", f.Type)
	}
	s := v.session.Load()
	if s == nil {
		return agora.Errorf(agora.InvalidRequest, "register first")
	}
	return do(v, s, f)
}

// heartbeat has nothing to do: having come is all that the frame says.
func (v *verbs) heartbeat(*wire.Frame) error {
	if s := v.session.Load(); s != nil {
		return s.Beat(v.context())
	}
	return nil
}

func (v *verbs) refresh(s *edge.Session, f *wire.Frame) error {
	ends, err := s.Refresh(v.context(), f.Token)
	if err != nil {
		return err
	}
	v.out.queue(&wire.Frame{Type: "agent.refreshed", ID: f.ID, Expires: unix(ends)})
	return nil
}

// unix returns a time in whole seconds; 0 for none.
func unix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.Unix(), 1))
}

func (v *verbs) relay(s *edge.Session, f *wire.Frame) error {
	c := commandOf(edge.Send, f)
	c.Message = f.Relay()
	m := &c.Message
	if m.Part == agora.Whole || m.Part == agora.Start {
		correlate(s, f, &c)
		if m.Kind == agora.Reply && f.RequestID == "" && m.Meta.Parent != "" {
			m.Meta.Parent = v.meant(m.To.Agent, m.Meta.Parent)
		}
	}
	if m.Part == agora.Cancel {
		m.Kind = agora.Request // the session knows whose stream it is
	}
	own(m)
	return s.Do(v.context(), &c)
}

// cancel gives up an open call of the connection, or a stream.
func (v *verbs) cancel(s *edge.Session, f *wire.Frame) error {
	if f.N == 0 && v.cancelCall(f) {
		return nil
	}
	return v.relay(s, f)
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
func correlate(s *edge.Session, f *wire.Frame, c *edge.Command) {
	m := &c.Message
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
		c.Request = name
	}
}

// commandOf is a frame as a command, but for what its verb needs.
func commandOf(verb edge.Verb, f *wire.Frame) edge.Command {
	return edge.Command{Verb: verb, ID: f.ID, Receipts: f.Receipts, Trace: f.Traceparent, Space: f.Space, Event: f.EventID, Data: f.Data, N: f.N}
}

func (v *verbs) ack(s *edge.Session, f *wire.Frame) error {
	return s.Do(v.context(), &edge.Command{Verb: edge.Ack, Space: f.Space, Seq: f.Seq})
}

func (v *verbs) join(s *edge.Session, f *wire.Frame) error {
	c := commandOf(edge.Join, f)
	c.Where = spaces.Where{HasLast: f.HasLastSeq, Last: f.LastSeq, History: f.History}
	c.Done = func(o edge.Outcome) {
		answer := &wire.Frame{Type: "space.joined", ID: f.ID, Space: f.Space, Seq: o.Joined.Seq}
		answer.Members, answer.LeftOut = v.members(s.Agent(), o.Joined.Members)
		v.out.queue(answer)
	}
	return s.Do(v.context(), &c)
}

func (v *verbs) leaveSpace(s *edge.Session, f *wire.Frame) error {
	c := commandOf(edge.Leave, f)
	c.Done = func(edge.Outcome) {
		if f.ID != "" {
			v.out.queue(&wire.Frame{Type: "space.left", ID: f.ID, Space: f.Space})
		}
	}
	return s.Do(v.context(), &c)
}

func (v *verbs) create(s *edge.Session, f *wire.Frame) error {
	err := s.Actor().CreateSpace(v.context(), f.Space)
	if err == nil {
		v.out.queue(&wire.Frame{Type: "space.created", ID: f.ID, Space: f.Space})
	}
	return err
}

func (v *verbs) publish(s *edge.Session, f *wire.Frame) error {
	c := commandOf(edge.Publish, f)
	if f.Stream {
		c.Verb = edge.OpenEvent
	}
	return s.Do(v.context(), &c)
}

func (v *verbs) publishDelta(s *edge.Session, f *wire.Frame) error {
	return s.Do(v.context(), &edge.Command{Verb: edge.ContinueEvent, Space: f.Space, Event: f.EventID, Part: agora.Chunk, N: f.N, Data: f.Data})
}

func (v *verbs) publishDone(s *edge.Session, f *wire.Frame) error {
	return s.Do(v.context(), &edge.Command{Verb: edge.ContinueEvent, Space: f.Space, Event: f.EventID, Part: agora.End, N: f.N})
}

func (v *verbs) cancelEvent(s *edge.Session, f *wire.Frame) error {
	c := commandOf(edge.CancelEvent, f)
	return s.Do(v.context(), &c)
}
