package edge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/spaces"
)

// act is one verb of an agent's that came by another edge than that of its session, which does it.
type act struct {
	Verb  verb           `json:"verb"`
	Agent agora.Address  `json:"agent"`
	ID    string         `json:"id"` // names it in what is told of it; the same when it is asked for again
	Want  agora.Receipts `json:"want,omitempty"`
	Trace string         `json:"trace,omitempty"`

	Request string         `json:"request,omitempty"` // verbSend: as of a Want
	Message *agora.Message `json:"message,omitempty"` // verbSend, verbAnswer

	Space string          `json:"space,omitempty"` // all others, up to verbAck
	Event string          `json:"event,omitempty"` // verbPart, verbCancelEvent
	Part  agora.Part      `json:"part,omitempty"`  // verbPart
	Data  json.RawMessage `json:"data,omitempty"`  // verbPublish, verbOpen, verbPart
	Where spaces.Where    `json:"where,omitzero"`  // verbJoin
	Seq   uint64          `json:"seq,omitempty"`   // verbAck

	Principal string `json:"principal,omitempty"` // verbAlive, verbUpdate: who has to be that of the session
	Card      []byte `json:"card,omitempty"`      // verbUpdate: as presence packs it, like the next
	Detail    []byte `json:"detail,omitempty"`
}

// verb is what an act does.
type verb string

const (
	verbSend        verb = "send"
	verbAnswer      verb = "answer"
	verbPublish     verb = "publish"
	verbOpen        verb = "open" // a streamed event
	verbPart        verb = "part"
	verbCancelEvent verb = "cancel_event"
	verbJoin        verb = "join"
	verbLeave       verb = "leave"
	verbAck         verb = "ack"
	verbAlive       verb = "alive"  // of an agent that an edge has dialled, like the next
	verbUpdate      verb = "update" // its card
)

// Outcome is what became of a verb that an Actor has said.
type Outcome struct {
	Seq    uint64        `json:"seq,omitempty"`   // where it is stored; 0 for what stores nothing
	Event  string        `json:"event,omitempty"` // id of the event that was opened
	Joined spaces.Joined `json:"joined,omitzero"`
}

// acted is an edge's answer to an act.
type acted struct {
	Outcome
	Elsewhere  bool          `json:"elsewhere,omitempty"` // no such session is here, or no more: nothing was done
	Code       agora.Code    `json:"code,omitempty"`
	Message    string        `json:"message,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

func (r *acted) err() error {
	if r.Code == "" {
		return nil
	}
	return &agora.Error{Code: r.Code, Message: r.Message, RetryAfter: r.RetryAfter}
}

// actsName is the name under which one life of an edge is asked for acts: apart from short questions, as acts may wait.
func actsName(answers string) string { return answers + ".acts" }

// do does an act and waits until it is stored, where it stores something.
func (a *act) do(ctx context.Context, s *Session) (out Outcome, err error) {
	told := make(chan Notice, 2) // what opens an event is told its id, and that it is stored
	w := Want{RequestID: a.ID, Receipts: a.Want | agora.Stored, Trace: a.Trace, Request: a.Request, Told: func(n Notice) {
		select {
		case told <- n:
		default: // nobody waits for more
		}
	}}
	stores := true
	switch a.Verb {
	case verbSend:
		m := *a.Message
		m.ID = a.ID
		stores = m.Part != agora.Cancel
		err = s.Send(ctx, m, w)
	case verbAnswer:
		m := *a.Message
		m.ID = a.ID
		if (mailer{s}).mails(ctx, &m) {
			return mailer{s}.mail(ctx, m, w)
		}
		err = s.Answer(ctx, m, w)
	case verbPublish:
		err = s.Publish(ctx, a.Space, 0, a.Data, w)
	case verbOpen:
		err = s.PublishStart(ctx, a.Space, 0, a.Data, w)
	case verbPart:
		err = s.PublishPart(ctx, a.Space, a.Event, a.Part, 0, a.Data, w)
	default:
		stores = false
		out, err = a.doAside(ctx, s, w)
	}
	if err == nil && stores {
		err = out.await(ctx, told)
	}
	return out, err
}

// await waits until what a verb stores is stored, and takes note of what is told meanwhile.
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

// doAside does an act that stores nothing for others, or of which nothing more is told.
func (a *act) doAside(ctx context.Context, s *Session, w Want) (out Outcome, err error) {
	switch a.Verb {
	case verbCancelEvent:
		err = s.CancelEvent(ctx, a.Space, a.Event, w)
	case verbJoin:
		err = s.Join(ctx, a.Space, a.Where, func(j spaces.Joined) { out.Joined = j })
	case verbLeave:
		err = s.Leave(ctx, a.Space, func() {})
	case verbAck:
		err = s.Ack(ctx, a.Space, a.Seq)
	case verbAlive, verbUpdate:
		err = a.doDialled(ctx, s)
	default:
		err = agora.Errorf(agora.InvalidRequest, "an edge of another version asked for this")
	}
	return out, err
}
