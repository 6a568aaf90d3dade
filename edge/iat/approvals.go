package iat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/iat"
)

// requireApproval asks for approval and answers once that is decided: with the payload of who has decided.
func (d *Door) requireApproval(x *web.Exchange, e *iat.Envelope, s *saying) error {
	x.Last()
	defer func() {
		if x.Context().Err() != nil {
			x.Actor.LeaveApproval(s.as, e.ID)
		}
	}()
	var q approval.Approval
	err := x.UntilDrained(errDrains, func(ctx context.Context) (err error) {
		wait, cancel := context.WithTimeout(ctx, d.cfg.MaxWait)
		defer cancel()
		q, err = x.Actor.AwaitApproval(wait, s.as, s.message(e, ""))
		if err != nil && wait.Err() != nil && ctx.Err() == nil {
			err = agora.Errorf(agora.Timeout, "nobody has decided yet: post it again")
		}
		return err
	})
	if err != nil {
		return err
	}
	answer := d.decision(&q, e)
	if !x.WantsEvents() {
		return x.AnswerBytes(http.StatusOK, media, append(answer, '\n'))
	}
	events, err := x.EventsEvery(d.cfg.KeepAlive)
	if err != nil {
		return err
	}
	return events.SendLines(web.AppendEvent(nil, 0, answer))
}

// decision returns a decision as the response to the envelope that asked for it.
func (d *Door) decision(q *approval.Approval, e *iat.Envelope) []byte {
	m := edge.Decision(q)
	return iat.AppendEnvelope(nil, &m, iat.Delivery{ID: approval.Box(q.Tenant, q.Agent, q.ID), Parent: q.ID, Time: d.now(), Trace: cmp.Or(e.Trace, madeTrace(&m))})
}

// socketApproval asks for approval by a socket: the decision comes as mail, but where it stands already.
func (s *saying) socketApproval(ctx context.Context, e *iat.Envelope, p *peer) error {
	q, err := s.actor.RequireApproval(ctx, s.as, s.message(e, ""))
	if err == nil && q.State != approval.Pending {
		p.link.say(s.door.decision(&q, e))
	}
	return err
}

// approvals answers over HTTP for those who decide: it lists approvals, has them watched, and decides them.
type approvals struct {
	all       *approval.Approvals
	keepAlive time.Duration // between two comments of those who watch
}

// approvalView is an approval as the door shows it. Times are in Unix seconds.
type approvalView struct {
	ID      string          `json:"id"`
	Agent   agora.AgentID   `json:"agent"`
	To      agora.AgentID   `json:"to"`
	State   approval.State  `json:"state"`
	Payload json.RawMessage `json:"payload"`
	Asked   int64           `json:"asked_at"`
	Expires int64           `json:"expires_at"`
	By      string          `json:"by,omitempty"`
	Decided int64           `json:"decided_at,omitempty"`
	Note    string          `json:"note,omitempty"`
}

func viewOf(q *approval.Approval) approvalView {
	v := approvalView{
		ID: q.ID, Agent: q.Agent, To: q.To, State: q.State, Payload: q.Request, Asked: q.Asked.Unix(), Expires: q.Expires.Unix(), By: q.By, Note: q.Note,
	}
	if !q.Decided.IsZero() {
		v.Decided = q.Decided.Unix()
	}
	return v
}

// states that may be asked for.
var states = []approval.State{approval.Pending, approval.Approved, approval.Denied, approval.Expired}

// filterOf reads which approvals are asked for.
func filterOf(x *web.Exchange) (f approval.Filter, err error) {
	q, err := x.Query("state", "agent", "to", "after")
	if err != nil {
		return f, err
	}
	after, err := strconv.ParseUint(cmp.Or(q.Get("after"), "0"), 10, 64)
	if err != nil {
		return f, agora.Errorf(agora.InvalidRequest, "after must be the next of an answer")
	}
	f = approval.Filter{State: approval.State(q.Get("state")), Agent: agora.AgentID(q.Get("agent")), To: agora.AgentID(q.Get("to")), After: after}
	if f.State != "" && !slices.Contains(states, f.State) {
		return f, agora.Errorf(agora.InvalidRequest, "state is pending, approved, denied or expired")
	}
	return f, nil
}

// maySee reports whether who asks may see an approval: who may decide it, or be its asker or its addressee.
func maySee(a *edge.Actor, q *approval.Approval) bool {
	return a.MayDecide(q.Agent, q.To) == nil || a.Principal().May(q.Agent) || a.Principal().May(q.To)
}

// list answers with approvals, or has them watched.
func (a *approvals) list(x *web.Exchange) error {
	f, err := filterOf(x)
	if err != nil {
		return err
	}
	if x.WantsEvents() && x.Request.Method != http.MethodHead {
		return a.watch(x, f)
	}
	if err := a.all.CatchUp(x.Context()); err != nil {
		return err
	}
	list, last, err := web.Page(a.visible(x, f), maxListed, func(q *approval.Approval) ([]byte, error) { return json.Marshal(viewOf(q)) })
	if err != nil {
		return err
	}
	answer := struct {
		Approvals []json.RawMessage `json:"approvals"`
		More      bool              `json:"more"`
		Next      string            `json:"next,omitempty"`
	}{list, last != nil, ""}
	if last != nil {
		answer.Next = strconv.FormatUint(last.Seq, 10)
	}
	return x.Answer(http.StatusOK, answer)
}

// visible goes through the approvals that are asked for, and that who asks may see.
func (a *approvals) visible(x *web.Exchange, f approval.Filter) iter.Seq[approval.Approval] {
	return func(yield func(approval.Approval) bool) {
		for more := true; more; {
			var all []approval.Approval
			all, more = a.all.List(x.Actor.Principal().Tenant, f)
			for i := range all {
				f.After = all[i].Seq
				if maySee(x.Actor, &all[i]) && !yield(all[i]) {
					return
				}
			}
		}
	}
}

// get answers with one approval.
func (a *approvals) get(x *web.Exchange) error {
	q, err := a.find(x)
	if err != nil {
		return err
	}
	return x.Answer(http.StatusOK, viewOf(&q))
}

// find returns the approval in the path, of the agent that the query names where it names one.
func (a *approvals) find(x *web.Exchange) (q approval.Approval, err error) {
	named, err := x.Query()
	if err != nil {
		return q, err
	}
	tenant, id := x.Actor.Principal().Tenant, x.Request.PathValue("id")
	if agent := named.Get("agent"); agent != "" {
		q, err = a.all.Get(x.Context(), tenant, agora.AgentID(agent), id)
	} else {
		q, err = a.all.Find(x.Context(), tenant, id)
	}
	if err == nil && !maySee(x.Actor, &q) {
		err = agora.Errorf(agora.Forbidden, "this approval is for others to see")
	}
	return q, err
}

// verdict is the body of a POST to an approval.
type verdict struct {
	Approved *bool  `json:"approved"`
	Note     string `json:"note"`
}

// decide decides an approval.
func (a *approvals) decide(x *web.Exchange) error {
	var v verdict
	if err := x.Decode(&v); err != nil {
		return err
	}
	if v.Approved == nil {
		return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "approved must be true or false"), Path: "/approved"}
	}
	q, err := a.find(x)
	if err != nil {
		return err
	}
	by, err := decider(x, &q)
	if err != nil {
		return err
	}
	q, err = a.all.Decide(x.Context(), q.Tenant, q.Agent, q.ID, approval.Verdict{Approved: *v.Approved, By: by, Note: strings.TrimSpace(v.Note)})
	if err != nil {
		return conflict(err)
	}
	return x.Answer(http.StatusOK, viewOf(&q))
}

// conflict gives an approval that is decided already the status that says so.
func conflict(err error) error {
	if errors.Is(err, approval.ErrDecided) {
		return &web.Refusal{Status: http.StatusConflict, Err: agora.AsError(err)}
	}
	return err
}

// decider returns the name of who decides an approval over HTTP: the agent that the request names with as, the only one
// that its principal may be, else the principal's own. Nobody decides what it has asked for itself.
func decider(x *web.Exchange, q *approval.Approval) (string, error) {
	p := x.Actor.Principal()
	by := x.Request.URL.Query().Get("as")
	if id, only := p.Sole(); only {
		by = string(id)
	}
	if by != "" && !p.May(agora.AgentID(by)) {
		return "", agora.Errorf(agora.Forbidden, "this principal may not be agent %q", by)
	}
	if by == string(q.Agent) {
		return "", agora.Errorf(agora.Forbidden, "nobody decides what it has asked for itself")
	}
	if err := x.Actor.MayDecide(q.Agent, q.To); err != nil {
		return "", err
	}
	switch {
	case by != "":
		return by, nil
	case p.Name != "":
		return p.Name, nil
	}
	return "operator", nil
}

// watchApprovals answers with an event for each approval that is there, and for each change. Who is too slow for that
// begins again.
func (a *approvals) watch(x *web.Exchange, f approval.Filter) error {
	w := a.all.Watch(x.Actor.Principal().Tenant, f)
	defer w.Close()
	if err := a.all.Synced(); err != nil {
		return err
	}
	events, err := x.EventsEvery(a.keepAlive)
	if err != nil {
		return err
	}
	return x.UntilDrained(errDrains, func(ctx context.Context) error {
		for all := slices.Collect(a.visible(x, f)); ; {
			if err := show(x, events, f, all); err != nil {
				return err
			}
			changed, anew, err := w.Next(ctx)
			if err != nil {
				return err
			}
			if all = changed; anew {
				all = slices.Collect(a.visible(x, f))
			}
		}
	})
}

// show says those of some approvals as events that are asked for, and that who asks may see.
func show(x *web.Exchange, events *web.Events, f approval.Filter, all []approval.Approval) error {
	for i := range all {
		q := &all[i]
		if !f.Matches(q) || !maySee(x.Actor, q) {
			continue
		}
		b, err := json.Marshal(viewOf(q))
		if err != nil {
			return err
		}
		if err := events.Send(web.Event{Data: b}); err != nil {
			return err
		}
	}
	return nil
}
