package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// holders has commands done by the edges that hold the sessions which they are of.
type holders struct {
	holder   presence.Holder // this edge
	broker   *broker.Broker
	presence *presence.Store
	sessions *sessionTable
	calls    *call.Registry
}

// errElsewhere means that who seemed to hold a session does not, or not any more.
var errElsewhere = errors.New("the session is elsewhere")

// do has the holder of a session do a command, once; it is the same command when it is asked for again. What of it
// needs no session is done by s, where that is not nil. errElsewhere where nobody does it now.
func (d *holders) do(ctx context.Context, c *Command, s *actingAs) (Outcome, error) {
	says := s != nil && (c.Verb == Send || c.Verb == Answer) // a message: whole, it needs no session
	if c.Verb == Send && c.Message.Part == agora.Whole {
		return s.alone(ctx, c)
	}
	if held := d.sessions.live(c.Agent); held != nil {
		return held.doStored(ctx, c)
	}
	found, err := d.presence.Addressees.Lookup(ctx, c.Agent.Tenant, c.Agent.Agent)
	switch {
	case err != nil:
		return Outcome{}, err
	case found.State != presence.Online && says:
		if found.Returns {
			if goesOn, err := d.goesOn(ctx, c); goesOn || err != nil {
				return Outcome{}, cmp.Or(err, errElsewhere)
			}
		}
		return s.alone(ctx, c)
	case found.State != presence.Online || found.Holder == d.holder:
		return Outcome{}, errElsewhere
	}
	r, err := d.askFor(ctx, found.Holder, c)
	switch {
	case errors.Is(err, broker.ErrNoEdge) || err == nil && r.Elsewhere:
		return Outcome{}, errElsewhere
	case err != nil:
		return Outcome{}, err
	}
	return r.Outcome, r.err()
}

// goesOn reports whether a command is of a stream of a session that is in its grace: it waits for that to come back.
// What ends a stream is of none where none of its name is open.
func (d *holders) goesOn(ctx context.Context, c *Command) (bool, error) {
	m := c.Message
	switch m.Part {
	case agora.Start, agora.Chunk:
		return true, nil
	}
	name := cmp.Or(m.Stream, m.Meta.Parent)
	if name == "" {
		return false, nil
	}
	m.From, m.To = c.Agent.Agent, agora.ToAgent(c.Agent.Tenant, m.To.Agent)
	if m.Kind == agora.Reply {
		box, is, err := d.calls.BoxOf(ctx, &m)
		if err != nil {
			return false, err
		}
		if is {
			m.To = box
		}
	}
	return d.presence.Addressees.Streams(ctx, c.Agent.Tenant, m.From, m.To, name)
}

// askFor asks the holder of a session for a command, now and then once more: question or answer may be lost. Where the
// session is found to be elsewhere meanwhile, it waits no more.
func (d *holders) askFor(ctx context.Context, h presence.Holder, c *Command) (r commanded, err error) {
	for {
		if !guard.Acts {
			c.ID = rand.Text()
		}
		body, err := json.Marshal(c)
		if err != nil {
			return commanded{}, err
		}
		try, cancel := context.WithTimeout(ctx, actAgain)
		answer, err := d.broker.Ask(try, commandsName(answerName(h)), body)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return r, json.Unmarshal(answer, &r)
		}
		if !late {
			return commanded{}, err
		}
		found, err := d.presence.Addressees.Lookup(ctx, c.Agent.Tenant, c.Agent.Agent)
		if err == nil && (found.State != presence.Online || found.Holder != h) {
			return commanded{}, broker.ErrNoEdge
		}
	}
}

// commandsName is the name under which one life of an edge is asked for commands: apart from short questions, as
// commands may wait.
func commandsName(answers string) string { return answers + ".acts" }

// doStored does a command and waits until it is stored, where it stores something.
func (s *Session) doStored(ctx context.Context, c *Command) (out Outcome, err error) {
	told := make(chan Notice, 2) // who opens an event is told its id, and that it is stored
	mine := *c
	mine.Receipts |= agora.Stored
	mine.anywhere = true
	mine.Told = func(n Notice) {
		select {
		case told <- n:
		default: // nobody waits for more
		}
	}
	mine.Done = func(o Outcome) { out = o }
	if c.Verb == Send || c.Verb == Answer {
		mine.Message.ID = c.ID
	}
	if err = s.Do(ctx, &mine); err == nil && c.stores() {
		err = out.await(ctx, told)
	}
	return out, err
}

// stores reports whether a command stores something for others, of which its sender is told.
func (c *Command) stores() bool {
	switch c.Verb {
	case Send:
		return c.Message.Part != agora.Cancel
	case Answer, Publish, OpenEvent, ContinueEvent:
		return true
	}
	return false
}

// await waits until what a command stores is stored, and notes what is told meanwhile.
func (out *Outcome) await(ctx context.Context, told <-chan Notice) error {
	for {
		select {
		case n := <-told:
			switch n.Kind {
			case NoticePublished:
				out.Event = n.Stream
			case NoticeFault:
				return n.Err
			case NoticeReceipt:
				out.Seq = n.Seq
				return nil
			}
		case <-ctx.Done():
			return agora.AsError(ctx.Err())
		}
	}
}

// actAgain is how long an Actor waits for the holder of a session before it looks whether that still is, and asks once
// more.
const actAgain = 2 * time.Second
