package edge

import (
	"fmt"
	"math"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/internal/framesize"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// A message that the agent can't take is not given to it: a gap stands in its place, and its sender is told, so that
// nobody waits for it.

// frameBound is how many bytes a frame has at most that a connection takes.
type frameBound int32

// newFrameBound returns the bound of a connection that takes frames of most bytes; 0 for any.
func newFrameBound(most int) frameBound {
	if most <= 0 {
		most = math.MaxInt32
	}
	return frameBound(min(most, math.MaxInt32))
}

// excludes reports whether a message would come in a frame that the connection does not take.
func (b frameBound) excludes(m *agora.Message) bool {
	return len(m.Body) > framesize.Small(int(b)) && framesize.Of(m) > int(b)
}

// leaveOut returns what stands in the place of a message that the agent can't take, and has its sender be told. It
// returns false where nothing does: of a stream that the agent is given nothing of any more.
func (i *inbound) leaveOut(peer agora.Address, m *agora.Message) (Delivery, bool) {
	switch {
	case m.Kind == agora.Receipt && !i.out.heard(m, false):
		return Delivery{}, false
	case m.Kind > agora.Reply:
	case i.drops(peer, m):
		return Delivery{}, false
	case m.Part == agora.Whole:
		i.refuseAnswer(peer, m)
		i.receiptsOwed().undelivered(m)
	default:
		if m.Part == agora.Start {
			i.refuseAnswer(peer, m)
		}
		i.refuseStream(peer, m)
	}
	return Delivery{Message: gapFor(m)}, true
}

// gapFor returns the gap that stands in the place of a message.
func gapFor(m *agora.Message) *agora.Message {
	return &agora.Message{Kind: agora.Gap, To: m.To, N: m.Seq, Seq: m.Seq}
}

// refuseAnswer tells the agent that the answer to its request is one that it can't take, where a message is that.
func (i *inbound) refuseAnswer(peer agora.Address, m *agora.Message) {
	if m.Kind != agora.Reply || m.Meta.Parent == "" {
		return
	}
	i.out.heard(m, false)
	i.conn.Notify(Notice{Kind: NoticeUnanswered, RequestID: m.Meta.Parent, To: peer, Err: errLargeAnswer})
}

// errLargeAnswer is told to an agent in the place of an answer that it can't take.
var errLargeAnswer = agora.Errorf(agora.MessageTooLarge, "the answer is larger than a frame that this connection takes")

// refuseStream has nothing more of a stream be given to the agent, of which it can't take a part, and its sender be
// told.
func (i *inbound) refuseStream(peer agora.Address, m *agora.Message) {
	if m.Kind == agora.Request && m.Meta.Call != "" {
		i.out.heard(m, false)
	}
	i.incoming.cancel(streamKey{peer, m.Stream}, m.Seq-1)
	o := i.receiptsOwed()
	o.hold(m.Seq - 1)
	refusal := agora.AbortBody{Code: agora.MessageTooLarge}.Message()
	refusal.Kind, refusal.Part, refusal.Stream, refusal.From, refusal.To = agora.Control, agora.Cancel, m.Stream, i.claim.Agent, peer
	seq := m.Seq
	i.node.background(func() {
		o.release(o.insist(func() error { return o.refuseStream(refusal, seq) }), seq-1, seq)
	})
}

// refuseStream is that of a puller, done behind.
func (o *receiptQueue) refuseStream(refusal agora.Message, seq uint64) error {
	st := presence.Stream{Peer: refusal.To.Agent, Stream: refusal.Stream, Seq: seq - 1}
	if err := o.node.cfg.Presence.Lanes.Cancel(o.node.ctx, o.claim, st); err != nil {
		return agora.AsError(err)
	}
	to, err := o.out.sender().Route(o.node.ctx, &refusal)
	if err != nil {
		return err
	}
	refusal.To = to
	if err := o.post(refusal, seq); err != nil {
		return err
	}
	o.out.sender().Cut(to.Space, refusal.Stream)
	return nil
}

// post has a sender be told what became of a message of the mailbox: once, however often and wherever that is done
// within the time for which the log knows what it has stored.
func (o *receiptQueue) post(m agora.Message, seq uint64) error {
	_, err := o.node.relay.Post(o.node.ctx, o.actor.Principal().Name, fmt.Sprintf("undelivered/%s/%d", o.claim.Agent, seq), m)
	return err
}

// undelivered has the sender of a whole message be told that the agent is not given it: who called and waits for an
// answer, in its box.
func (o *receiptQueue) undelivered(m *agora.Message) {
	switch {
	case m.From == "" || approval.IsBox(m.Meta.Call): // an approval comes to an end by itself
	case m.Kind == agora.Request && m.Meta.Call != "":
		o.hold(m.Seq - 1)
		abort := agora.AbortBody{Code: agora.MessageTooLarge}.Message()
		abort.Kind, abort.To = agora.Control, agora.ToBox(o.claim.Tenant, m.Meta.Call, m.From)
		box, seq := m.Meta.Call, m.Seq
		o.node.background(func() {
			o.release(o.insist(func() error {
				_, err := o.node.relay.Post(o.node.ctx, "", "call-over/"+box, abort)
				return err
			}), seq-1, seq)
		})
	default:
		what := subject{id: m.ClientID(), n: m.N, at: m.Seq}
		if m.N > 0 {
			what.session = m.Session
		}
		o.mu.Lock()
		a, first := o.enter(m.From, what, agora.Undelivered, m.Seq)
		o.mu.Unlock()
		if to := m.From; first {
			o.node.background(func() { o.flush(to, a) })
		}
	}
}

// insist does something, again while it is refused for the moment, and reports whether it came to an end before the
// session did.
func (o *receiptQueue) insist(do func() error) bool {
	for {
		if err := do(); !forNow(err) {
			return o.node.ctx.Err() == nil
		}
		if o.life.ended() || !pause.For(o.node.ctx, time.Second) {
			return false
		}
	}
}

// leaveOutEvent returns what stands in the place of an event that the agent can't take. Of one that is streamed it is
// given nothing more. Its publisher is not told: members come and go, and none of them decides what may be said to the
// others.
func (i *inbound) leaveOutEvent(p *subscription, e *spaces.Event) Delivery {
	if e.Kind == agora.Event && e.Part != agora.Whole {
		st := presence.Stream{Peer: agora.AgentID(spaceMark + e.To.Space), Stream: e.Stream, Seq: e.Seq - 1}
		i.incoming.cancel(streamKey{e.To, e.Stream}, st.Seq)
		i.node.background(func() {
			// Should it fail, only an agent that comes back behind the gap would be given the rest.
			if err := i.node.cfg.Presence.Lanes.Cancel(i.node.ctx, i.claim, st); err != nil {
				i.node.cfg.Log.Debug("an event that was left out is not noted", "agent", i.claim.Agent, "err", err)
			}
		})
	}
	return Delivery{Event: &spaces.Event{Message: *gapFor(&e.Message), Stamp: e.Stamp}, sub: p}
}
