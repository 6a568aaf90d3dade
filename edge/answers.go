package edge

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// answers is what an edge answers others.
type answers struct {
	node   *Node
	acting singleflight
	stops  []func()
}

// begin has the edge be asked under its name: short questions, and, apart from them as they may wait, commands.
func (a *answers) begin(h presence.Holder) error {
	for name, answer := range map[string]func(context.Context, []byte) []byte{answerName(h): a.answer, commandsName(answerName(h)): a.act} {
		stop, err := a.node.cfg.Broker.Answer(name, answer)
		if err != nil {
			return err
		}
		a.stops = append(a.stops, stop)
	}
	return nil
}

// end waits for what is being answered.
func (a *answers) end() {
	for _, stop := range a.stops {
		stop()
	}
}

// answer answers a question.
func (a *answers) answer(ctx context.Context, body []byte) []byte {
	var q question
	if err := json.Unmarshal(body, &q); err != nil {
		return []byte(`{}`)
	}
	answer, err := json.Marshal(a.reply(ctx, &q))
	if err != nil {
		return []byte(`{}`)
	}
	return answer
}

func (a *answers) reply(ctx context.Context, q *question) (r reply) {
	n, at := a.node, agora.ToAgent(q.Tenant, q.Agent)
	switch q.Verb {
	case "probe":
		r.Alive = n.owner.Probed(ctx, at, q.Epoch)
		r.Leaving = !r.Alive && a.leaving(at, q.Epoch)
	case "inspect":
		if s := n.sessions.under(at, q.Epoch); s != nil {
			r.Live = statusOf(s)
		}
	case "kick", "evict", "end":
		if s := n.sessions.under(at, q.Epoch); s != nil {
			s.endHere(ctx, endings[q.Verb])
			r.Done = true
		}
	case "self":
		r.Self = a.status()
	case "taken":
		r.Taken, r.Waits = n.calls.Taken(q.Tenant, q.Box)
	case "rebalance":
		r.Moves = n.balancer.MoveAtOnce(q.Moves, q.Rate)
	case "handover":
		r.Done, r.Clean = n.owner.HandOver(ctx, at, q.Epoch)
	case "confirmed":
		for _, s := range n.sessions.of(at, agora.MaxSeq) {
			r.Cursor = max(r.Cursor, s.cursor.read())
			if s.slow != nil && !s.life.ended() {
				r.Slow = append(r.Slow, s.slow()...)
			}
		}
	}
	return r
}

// status is what this edge says of itself.
func (a *answers) status() *EdgeStatus {
	n := a.node
	s, l := n.Stats(), n.cfg.Broker.Stats()
	v := &EdgeStatus{
		Ready: "yes", Draining: s.Draining, Since: n.began, Sessions: s.Sessions, Started: s.Started, Ended: s.Ended, Stored: s.Sent,
		LeaseLeft: s.LeaseLeft.Seconds(), Log: n.cfg.Broker.Connected(), Skew: l.Skew.Seconds(),
		Lanes: l.Lanes, Inboxes: l.Inboxes, Held: n.limits.Shedder.Held(),
	}
	if err := n.Ready(); err != nil {
		v.Ready = agora.AsError(err).Message
	}
	return v
}

// leaving reports whether the agent of an epoch has said goodbye.
func (a *answers) leaving(at agora.Address, epoch uint64) bool {
	s := a.node.sessions.under(at, epoch)
	return s != nil && s.life.saidGoodbye()
}

// act does what another edge was asked for.
func (a *answers) act(ctx context.Context, body []byte) []byte {
	r := a.acting.once(ctx, string(body), func() commanded { return a.acted(ctx, body) })
	answer, err := json.Marshal(r)
	if err != nil {
		return []byte(`{"elsewhere":true}`)
	}
	return answer
}

func (a *answers) acted(ctx context.Context, body []byte) (r commanded) {
	var what Command
	if err := json.Unmarshal(body, &what); err != nil {
		r.Code, r.Message = errUnknownVerb.Code, errUnknownVerb.Message
	} else if s := a.node.sessions.live(what.Agent); s == nil {
		r.Elsewhere = true
	} else if out, err := s.doStored(ctx, &what); err != nil {
		e := agora.AsError(err)
		r.Code, r.Message, r.RetryAfter = e.Code, e.Message, e.RetryAfter
	} else {
		r.Outcome = out
	}
	return r
}
