package simcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
)

// caller is who calls agents: it has no session.
const caller agora.AgentID = "caller"

// calls are calls of agents, which answer them in streams, at once or when all faults have ended.
type calls struct {
	w *world

	// Guarded by the world's mu.
	all      []*asked
	released bool
}

// asked is one call, and what is known of it.
type asked struct {
	k      int
	to     *agent
	box    string
	named  bool
	held   bool // who is asked does not answer before all faults have ended
	within time.Duration
	stop   context.CancelFunc // has its caller wait no more

	request *agora.Message // as who was asked got it; nil while it has not
	session int            // of that one, then
	answers [][]*part
	must    bool // it has to be answered whole

	over  bool
	whole bool
	err   error
	at    time.Time // when it was over
}

func newCalls(w *world) scene { return &calls{w: w} }

func (s *calls) usual() string { return "calls" }

func (s *calls) steps() map[string]func(*dice) {
	return map[string]func(*dice){"calls": s.call, "a stranger answers": s.intrude}
}

// call makes some calls at a time.
func (s *calls) call(d *dice) {
	to := s.w.anAgent(d)
	for range d.between(1, 4) {
		if d.coin() {
			to = s.w.anAgent(d)
		}
		c := &asked{to: to, named: d.coin(), held: d.between(0, 2) == 0, within: 30 * time.Second}
		if c.held {
			c.within = time.Hour
		}
		s.w.mu.Lock()
		if c.k = len(s.all); !to.began {
			s.w.mu.Unlock()
			continue
		}
		s.all = append(s.all, c)
		c.box = call.NewBox(agora.DefaultTenant, caller, c.name())
		s.w.mu.Unlock()
		own := newDice(d.Uint64())
		s.w.goesUntil("a call", &c.stop, func(ctx context.Context) { s.ask(ctx, c, own) })
	}
}

// goesUntil is goes for what ends, too, when stop is called, which mu guards.
func (w *world) goesUntil(what string, stop *context.CancelFunc, do func(ctx context.Context)) {
	w.goes(what, func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w.mu.Lock()
		*stop = cancel
		w.mu.Unlock()
		do(ctx)
	})
}

// name is under which a call is made; empty for none.
func (c *asked) name() string {
	if c.named {
		return c.requestID()
	}
	return ""
}

// requestID is how who is asked knows the request.
func (c *asked) requestID() string { return fmt.Sprint("r-", c.k) }

// ask makes a call at some edge, one with a name again and again until it has an answer that stays.
func (s *calls) ask(ctx context.Context, c *asked, d *dice) {
	for end := time.Now().Add(time.Minute); ; {
		e := s.w.anEdge(d)
		try, cancel := e.at(ctx)
		if c.named && d.between(0, 2) == 0 { // its caller's connection is lost
			stop := time.AfterFunc(d.millis(1, 4000), cancel)
			defer stop.Stop()
		}
		err := s.askOnce(try, e, c)
		lost := try.Err() != nil
		cancel()
		s.w.endsWell(c, err)
		again := c.named && err != nil && (lost || slices.Contains(passing, agora.AsError(err).Code)) && ctx.Err() == nil && (c.held || time.Now().Before(end))
		if !again || !rest(ctx, d.millis(5, 100)) {
			s.w.mu.Lock()
			c.over, c.whole, c.err, c.at = true, err == nil, err, time.Now()
			s.w.note("call %d of %s has ended: %v", c.k, c.to.id, err)
			s.w.mu.Unlock()
			return
		}
	}
}

// ends are the errors that a call may end with.
var ends = []agora.Code{agora.StreamAborted, agora.Timeout, agora.Unavailable, agora.AgentNotFound}

// passing are the errors after which one that has a name is made again.
var passing = []agora.Code{agora.Unavailable, agora.RateLimited}

// endsWell checks that a call may end with an error: also as the mailbox of who is asked has no room, where one is
// small.
func (w *world) endsWell(c *asked, err error) {
	e, is := errors.AsType[*agora.Error](err)
	if err != nil && !is && !errors.Is(err, context.Canceled) || is && !slices.Contains(ends, e.Code) && !(e.Code == agora.RateLimited && w.plan.Records < 100) {
		w.fail("call %d of %s: %v", c.k, c.to.id, err)
	}
}

// askOnce makes a call at an edge, and checks its answer as far as that comes.
func (s *calls) askOnce(ctx context.Context, e *node, c *asked) error {
	q := call.Request{Name: c.name(), Within: c.within, Box: c.box, Message: agora.Message{
		ID: c.requestID(), To: agora.Address{Agent: c.to.id}, Body: fmt.Appendf(nil, `{"call":%d}`, c.k),
	}}
	a, err := e.actor.Call(ctx, caller, q)
	if err != nil {
		return err
	}
	defer a.Close()
	return s.w.reads(ctx, a, c)
}

// reads reads the answer of a call to its end, and checks it as far as it comes.
func (w *world) reads(ctx context.Context, a *call.Answer, c *asked) error {
	var got []int
	for {
		m, err := a.Next(ctx)
		if errors.Is(err, io.EOF) {
			return w.isAnswer(c, got, true)
		}
		if err != nil {
			return err
		}
		uid, bad := strconv.Atoi(string(m.Body))
		if bad != nil {
			return fmt.Errorf("its answer has %q of %s", m.Body, m.From)
		}
		got = append(got, uid)
		if err := w.isAnswer(c, got, false); err != nil {
			return err
		}
	}
}

// isAnswer compares what has come of an answer with the answers that were given: it is one of them, from its beginning
// and in order.
func (w *world) isAnswer(c *asked, got []int, whole bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var want []int
	for _, parts := range c.answers {
		want = want[:0]
		for _, p := range parts {
			want = append(want, p.uid)
		}
		if len(got) <= len(want) && slices.Equal(got, want[:len(got)]) && (!whole || len(got) == len(want)) {
			return nil
		}
	}
	return fmt.Errorf("its answer is %v, whole: %v; want %v", got, whole, want)
}

// heard implements listener: who is asked answers.
func (s *calls) heard(a *agent, m *agora.Message) {
	var body struct {
		Call *int `json:"call"`
	}
	if m.Kind != agora.Request || m.Meta.Call == "" || json.Unmarshal(m.Body, &body) != nil || body.Call == nil || *body.Call >= len(s.all) {
		return
	}
	c, q := s.all[*body.Call], *m
	c.request, c.session = &q, a.session
	if !c.held {
		s.answer(c)
	}
}

func (s *calls) answer(c *asked) { c.answers = append(c.answers, c.to.reply(c.request, c.k%5)) }

// intrude puts an answer of somebody else's into the box of a call that is open.
func (s *calls) intrude(d *dice) {
	s.w.mu.Lock()
	var open []*asked
	for _, c := range s.all {
		if !c.over {
			open = append(open, c)
		}
	}
	s.w.mu.Unlock()
	if len(open) == 0 {
		return
	}
	c, part := open[d.between(0, len(open)-1)], []agora.Part{agora.Whole, agora.Start, agora.End}[d.between(0, 2)]
	m := agora.Message{Kind: agora.Reply, Part: part, From: "mallory", To: agora.ToBox(agora.DefaultTenant, c.box, caller), Body: []byte(`"of a stranger"`)}
	if part != agora.Whole {
		m.Stream = "strange"
	}
	s.w.goes("a stranger's answer", func(ctx context.Context) {
		_, _ = s.w.watcher.Publish(ctx, fmt.Sprint("strange-", c.box, part), m) // it may be refused
	})
}

// missing implements scene. A few leases after all faults, who has held an answer back moves, and gives it.
func (s *calls) missing() string {
	s.w.mu.Lock()
	released := s.released
	s.w.mu.Unlock()
	switch {
	case released:
		s.forgo()
		return s.untold()
	case s.w.scenes.since() < 2*lease:
		return "calls are held"
	}
	s.release()
	return "answers that were held back are on their way"
}

// release has all answers be given that were held back. Whoever can't answer any more is waited for no more.
func (s *calls) release() {
	s.w.mu.Lock()
	s.released = true
	var open []*asked
	move := map[*agent]bool{}
	for _, c := range s.all {
		switch {
		case c.over || !c.held:
		case c.request == nil || c.session != c.to.session || s.w.endless:
			c.stop()
		default:
			open = append(open, c)
			move[c.to] = true
		}
	}
	s.w.mu.Unlock()
	for _, a := range s.w.agents {
		if move[a] {
			a.connect(s.w.living()[len(s.all)%len(s.w.living())], true, 0)
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range open {
		c.must = c.to.names != plainly
		s.answer(c)
		s.w.note("call %d of %s is answered", c.k, c.to.id)
	}
}

// forgo gives up the calls that were answered in a session which is not that in which their agent was asked: it has
// moved, and presence had lost the one before. An answer of another session is none.
func (s *calls) forgo() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		if c.held && !c.over && c.request != nil && c.session != c.to.session {
			c.stop()
		}
	}
}

// log tells of a call what its log does: how often it was asked, and who was asked told that nobody waits. What is
// marked may stand there beside the same unmarked, or alone: it tells too, and counts for nothing else.
func (s *calls) log(c *asked) (asked, told int, tells, gap bool) {
	for _, m := range s.w.logs[agora.ToAgent(agora.DefaultTenant, c.to.id)] {
		switch {
		case m.Kind == agora.Gap:
			gap = true
		case m.Meta.Call != c.box:
		case m.Kind == agora.Control:
			if tells = true; !m.Again {
				told++
			}
		case m.Kind == agora.Request && !m.Again:
			asked++
		}
	}
	return asked, told, tells, gap
}

// untold names a call that nobody waits for, of which who was asked has not been told so; empty for none.
func (s *calls) untold() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		n, _, tells, gap := s.log(c)
		if c.over && n > 0 && len(c.answers) == 0 && !tells && !gap && !s.w.lax {
			return fmt.Sprintf("%s is not told that nobody waits for call %d (%v)", c.to.id, c.k, c.err)
		}
	}
	return ""
}

// judge implements scene: each call is asked once at most, who was asked is told once that nobody waits, and what was
// said to be stored has come.
func (s *calls) judge() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		n, told, _, gap := s.log(c)
		switch {
		case !gap && n > 1 && !(s.w.lax && c.named):
			s.w.failLocked("call %d of %s was asked %d times", c.k, c.to.id, n)
		case !gap && told > 1:
			s.w.failLocked("%s was told %d times that nobody waits for call %d", c.to.id, told, c.k)
		case c.must && !c.whole && !gap && c.session == c.to.session:
			s.w.failLocked("call %d of %s was answered, and ended with %v", c.k, c.to.id, c.err)
		}
		if e, is := errors.AsType[*agora.Error](c.err); is && e.Code == agora.Timeout && !s.w.lax && !gap && s.receipted(c) {
			s.w.failLocked("all of the answer of call %d was said to be stored, and it ended with %v", c.k, c.err)
		}
	}
}

// receipted reports whether all of an answer was said to be stored well before its call was over.
func (s *calls) receipted(c *asked) bool {
	for _, parts := range c.answers {
		if !slices.ContainsFunc(parts, func(p *part) bool { return !p.receipt || p.failed || p.refused || c.at.Sub(p.told) < 10*time.Second }) {
			return true
		}
	}
	return false
}
