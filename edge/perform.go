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

// acts has acts done by the edges that hold the sessions which they are of.
type acts struct {
	holder   presence.Holder // this edge
	broker   *broker.Broker
	presence *presence.Store
	sessions *sessionTable
	calls    *call.Registry
}

// errElsewhere means that who seemed to hold a session does not, or not any more.
var errElsewhere = errors.New("the session is elsewhere")

// perform has the holder of a session do an act, once; it is the same act when it is asked for again. errElsewhere where nobody does it now.
func (d *acts) perform(ctx context.Context, what *act, alone func() (Outcome, error)) (Outcome, error) {
	if what.Verb == verbSend && what.Message.Part == agora.Whole {
		return alone()
	}
	if s := d.sessions.live(what.Agent); s != nil {
		return what.do(ctx, s)
	}
	found, err := d.presence.Addressees.Lookup(ctx, what.Agent.Tenant, what.Agent.Agent)
	switch {
	case err != nil:
		return Outcome{}, err
	case found.State != presence.Online && alone != nil:
		if found.Returns {
			if goesOn, err := d.goesOn(ctx, what); goesOn || err != nil {
				return Outcome{}, cmp.Or(err, errElsewhere)
			}
		}
		return alone()
	case found.State != presence.Online || found.Holder == d.holder:
		return Outcome{}, errElsewhere
	}
	r, err := d.askFor(ctx, found.Holder, what)
	switch {
	case errors.Is(err, broker.ErrNoEdge) || err == nil && r.Elsewhere:
		return Outcome{}, errElsewhere
	case err != nil:
		return Outcome{}, err
	}
	return r.Outcome, r.err()
}

// goesOn tells whether an act is of a stream of a session that is in its grace: it waits for that to come back. What ends a stream is of none where none of its name is open.
func (d *acts) goesOn(ctx context.Context, what *act) (bool, error) {
	m := *what.Message
	switch m.Part {
	case agora.Start, agora.Chunk:
		return true, nil
	}
	name := cmp.Or(m.Stream, m.Meta.Parent)
	if name == "" {
		return false, nil
	}
	m.From, m.To = what.Agent.Agent, agora.ToAgent(what.Agent.Tenant, m.To.Agent)
	if m.Kind == agora.Reply {
		box, is, err := d.calls.BoxOf(ctx, &m)
		if err != nil {
			return false, err
		}
		if is {
			m.To = box
		}
	}
	return d.presence.Addressees.Streams(ctx, what.Agent.Tenant, m.From, m.To, name)
}

// askFor asks the holder of a session for an act, now and then once more: question or answer may be lost. Where the session is found to be
// elsewhere meanwhile, it waits no more.
func (d *acts) askFor(ctx context.Context, h presence.Holder, what *act) (r acted, err error) {
	for {
		if !guard.Acts {
			what.ID = rand.Text()
		}
		body, err := json.Marshal(what)
		if err != nil {
			return acted{}, err
		}
		try, cancel := context.WithTimeout(ctx, actAgain)
		answer, err := d.broker.Ask(try, actsName(answerName(h)), body)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return r, json.Unmarshal(answer, &r)
		}
		if !late {
			return acted{}, err
		}
		found, err := d.presence.Addressees.Lookup(ctx, what.Agent.Tenant, what.Agent.Agent)
		if err == nil && (found.State != presence.Online || found.Holder != h) {
			return acted{}, broker.ErrNoEdge
		}
	}
}

// actAgain is how long an Actor waits for the holder of a session before it looks whether that still is, and asks once more.
const actAgain = 2 * time.Second
