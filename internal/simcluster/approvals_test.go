package simcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
)

// expiry is when what nobody has decided is not approved.
const expiry = 10 * time.Second

// approvals are what agents ask approval for, and do once it is approved.
type approvals struct {
	w *world

	all []*risk // guarded by the world's mu
}

// risk is one thing that takes approval.
type risk struct {
	id    string
	by    agora.AgentID // who asks
	to    agora.AgentID // who is asked
	waits bool          // its asker waits for the decision

	done   int                // how often it was done
	failed error              // why its asker does not know what became of it
	stands *approval.Approval // as its asker was told
	said   []verdict
}

// verdict is what one has said who decides, and was told.
type verdict struct {
	approved bool
	by       string
	sure     bool               // it was said to be what stands
	other    *approval.Approval // what was said to stand instead
}

func newApprovals(w *world) scene { return &approvals{w: w} }

func (s *approvals) usual() string { return "decides" }

func (s *approvals) steps() map[string]func(*dice) {
	return map[string]func(*dice){"asks approval": s.ask, "decides": s.decide}
}

// stranger is who asks for approval without a session.
const stranger agora.AgentID = "asker"

// ask has an agent, or somebody without a session, ask for approval of one thing.
func (s *approvals) ask(d *dice) {
	s.w.mu.Lock()
	r := &risk{id: fmt.Sprint("risk-", len(s.all)), by: stranger, to: agora.Cluster, waits: d.coin()}
	if a := s.w.anAgent(d); d.coin() && a.began {
		r.by = a.id
	}
	if b := s.w.anAgent(d); d.coin() && b.began && r.by != b.id {
		r.to = b.id
	}
	s.all = append(s.all, r)
	s.w.mu.Unlock()
	own := newDice(d.Uint64())
	s.w.goes("an asker", func(ctx context.Context) {
		for end := time.Now().Add(time.Minute); ; {
			q, err := s.askOnce(ctx, r, own)
			if err == nil && q.State != approval.Pending {
				s.told(r, q)
				return
			}
			if err != nil && agora.AsError(err).Code != agora.Unavailable && !errors.Is(err, context.Canceled) || time.Now().After(end) || !rest(ctx, own.millis(5, 400)) {
				s.w.mu.Lock()
				r.failed = errors.Join(err, errUnknown)
				s.w.note("%s of %s: %v", r.id, r.by, err)
				s.w.mu.Unlock()
				return
			}
		}
	})
}

var errUnknown = errors.New("its asker does not know what became of it")

// askOnce asks at some edge.
func (s *approvals) askOnce(ctx context.Context, r *risk, d *dice) (approval.Approval, error) {
	e := s.w.anEdge(d)
	ctx, cancel := e.at(ctx)
	defer cancel()
	m := agora.Message{ID: r.id, To: agora.Address{Agent: r.to}, Body: fmt.Appendf(nil, `{"risk":%q}`, r.id), Meta: agora.Meta{Request: r.id}}
	if r.waits {
		return e.actor.AwaitApproval(ctx, r.by, m)
	}
	return e.actor.RequireApproval(ctx, r.by, m)
}

// told has the asker do what was approved.
func (s *approvals) told(r *risk, q approval.Approval) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	r.stands = &q
	s.w.note("%s of %s is %s by %s", r.id, r.by, q.State, q.By)
	if q.State == approval.Approved {
		r.done++
	}
}

// decide has one or two decide at a time what one of the last has asked for.
func (s *approvals) decide(d *dice) {
	s.w.mu.Lock()
	if len(s.all) == 0 || len(s.all) < 6 && d.between(0, 2) == 0 {
		s.w.mu.Unlock()
		s.ask(d)
		return
	}
	r := s.all[max(0, len(s.all)-1-d.between(0, 2))]
	s.w.mu.Unlock()
	for range d.between(1, 2) {
		v := verdict{approved: d.between(0, 2) > 0}
		own, replies := newDice(d.Uint64()), d.coin() && r.to != agora.Cluster
		s.w.goes("one who decides", func(ctx context.Context) {
			rest(ctx, own.millis(0, 3000))
			if replies {
				s.reply(ctx, r, own, v)
				return
			}
			s.verdict(ctx, r, own, v)
		})
	}
}

// verdict has an operator decide, until it is told what stands.
func (s *approvals) verdict(ctx context.Context, r *risk, d *dice, v verdict) {
	v.by = fmt.Sprint("operator-", d.Uint64())
	s.note(r, v)
	for range 20 {
		e := s.w.anEdge(d)
		try, cancel := e.at(ctx)
		err := e.actor.MayDecide(r.by, r.to)
		if err != nil {
			s.w.fail("an operator may not decide %s: %v", r.id, err)
		}
		_, err = e.asked.Decide(try, agora.DefaultTenant, r.by, r.id, approval.Verdict{Approved: v.approved, By: v.by})
		cancel()
		if other, is := errors.AsType[*approval.DecidedError](err); is {
			v.other = &other.Stands
		}
		v.sure = err == nil
		if v.sure || v.other != nil {
			s.note(r, v)
			return
		}
		if !rest(ctx, d.millis(5, 300)) {
			return
		}
	}
}

// reply has who is asked decide by a reply, by way of an edge that may not be that of its session.
func (s *approvals) reply(ctx context.Context, r *risk, d *dice, v verdict) {
	v.by = string(r.to)
	s.note(r, v)
	e := s.w.anEdge(d)
	ctx, cancel := e.at(ctx)
	defer cancel()
	m := agora.Message{
		ID: fmt.Sprint(r.id, "-", d.Uint64()), Kind: agora.Reply, To: agora.Address{Agent: r.by}, Meta: agora.Meta{Parent: r.id, Request: r.id},
		Body: fmt.Appendf(nil, `{"approved":%v}`, v.approved),
	}
	_, _ = e.actor.Do(ctx, r.to, edge.Command{Verb: edge.Send, Message: m}) // where nothing is pending that it knows of, it is mail like any
}

func (s *approvals) note(r *risk, v verdict) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	r.said = append(r.said, v)
	s.w.note("%s: %s says %v, it stands: %v, other: %v", r.id, v.by, v.approved, v.sure, v.other != nil)
}

// missing implements scene: what is decided and nobody waited for is mailed.
func (s *approvals) missing() string {
	if s.w.scenes.goingOn() != "" {
		return "some are not decided"
	}
	s.w.mu.Lock()
	all := s.all
	s.w.mu.Unlock()
	for _, r := range all {
		if r.failed != nil {
			continue
		}
		q, err := s.w.living()[0].asked.Get(context.Background(), agora.DefaultTenant, r.by, r.id)
		if err != nil {
			return fmt.Sprintf("%s can't be read: %v", r.id, err)
		}
		s.w.mu.Lock()
		told, _, sure := s.mails(r)
		s.w.mu.Unlock()
		if q.Mail && sure && !told {
			return fmt.Sprintf("the decision of %s is not mailed", r.id)
		}
	}
	return ""
}

// mails reports whether a mail tells an asker of a decision, and counts those that are not marked: what is marked may
// stand there alone. sure is false where there may be others.
func (s *approvals) mails(r *risk) (told bool, n int, sure bool) {
	log, is := s.w.logs[agora.ToAgent(agora.DefaultTenant, r.by)]
	for _, m := range log {
		if m.Kind == agora.Gap {
			return told, n, false
		}
		if m.Kind != agora.Reply || m.Meta.Request != r.id || m.Meta.Parent != r.id || m.From != agora.Cluster {
			continue
		}
		if told = true; !m.Again {
			n++
		}
	}
	if r.to != agora.Cluster && r.by != stranger {
		return told, n, false // replies may be mail as well
	}
	return told, n, is && !s.w.lax
}

// judge implements scene: every edge says the same of each, and all that was told, done and said agrees with it.
func (s *approvals) judge() {
	for _, r := range s.all {
		var stands *approval.Approval
		for _, e := range s.w.living() {
			q, err := e.asked.Get(context.Background(), agora.DefaultTenant, r.by, r.id)
			if code := agora.NotFound; err != nil && agora.AsError(err).Code == code && r.failed != nil {
				continue
			}
			if err != nil {
				s.w.fail("%s can't be read at %s: %v", r.id, e.id, err)
				continue
			}
			if stands != nil && (q.State != stands.State || q.By != stands.By) {
				s.w.fail("%s is %s by %s, and at %s %s by %s", r.id, stands.State, stands.By, e.id, q.State, q.By)
			}
			stands = &q
		}
		if stands != nil {
			s.w.mu.Lock()
			s.compare(r, stands)
			s.w.mu.Unlock()
		}
	}
}

// compare compares what was told, done and said of one thing with what stands.
func (s *approvals) compare(r *risk, q *approval.Approval) {
	same := func(o *approval.Approval) bool { return o == nil || o.State == q.State && o.By == q.By }
	switch _, n, _ := s.mails(r); {
	case q.State == approval.Pending:
		s.w.failLocked("%s is not decided, though its time is over", r.id)
	case !same(r.stands):
		s.w.failLocked("%s is %s by %s, and its asker was told %+v", r.id, q.State, q.By, r.stands)
	case r.done > 1 || r.done > 0 && q.State != approval.Approved || r.done == 0 && q.State == approval.Approved && r.failed == nil:
		s.w.failLocked("%s is %s, and was done %d times", r.id, q.State, r.done)
	case q.State != approval.Expired && q.Decided.After(q.Expires):
		s.w.failLocked("%s is %s at %v, after it had expired at %v", r.id, q.State, q.Decided, q.Expires)
	case n > 1:
		s.w.failLocked("the decision of %s was mailed %d times", r.id, n)
	}
	somebody := q.State == approval.Expired
	for _, v := range r.said {
		stands := v.by == q.By && (q.State == approval.Approved) == v.approved
		somebody = somebody || stands
		if v.sure && !stands || !same(v.other) {
			s.w.failLocked("%s is %s by %s, and %s was told otherwise of %v: %+v", r.id, q.State, q.By, v.by, v.approved, v.other)
		}
	}
	if !somebody {
		s.w.failLocked("%s is %s by %s, who has not said so", r.id, q.State, q.By)
	}
}
