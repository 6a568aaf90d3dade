package simcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
)

// leaver is an agent that has left, and calls others: it has a mailbox, and no session.
const leaver agora.AgentID = "leaver"

// lates are calls that their caller mostly leaves before they are answered, in one message. Such an answer goes to the
// mailbox of the caller.
type lates struct {
	w    *world
	mail *broker.Inbox // of the caller; nil before it is known

	// Guarded by the world's mu.
	all   []*late
	known bool // the caller is an agent
	begun bool // it is being made one
	got   []agora.Message
	gap   bool // something of its mailbox was lost before it was read
}

// late is one such call.
type late struct {
	asked
	times int           // it is made, where it has a name
	after time.Duration // that it was asked it is answered
	stays bool          // its caller waits until it is answered
	reply *part         // nil before it is answered
}

func newLates(w *world) scene { return &lates{w: w} }

func (s *lates) usual() string { return "calls and leaves" }

func (s *lates) steps() map[string]func(*dice) {
	return map[string]func(*dice){"calls and leaves": s.call}
}

// register makes the caller an agent: it has had a session.
func (s *lates) register(d *dice) {
	s.w.mu.Lock()
	begun := s.begun
	s.begun = true
	s.w.mu.Unlock()
	if begun {
		return
	}
	s.mail = s.w.watcher.Listen(agora.ToAgent(agora.DefaultTenant, leaver), broker.From{}, func() {})
	s.read()
	own := newDice(d.Uint64())
	s.w.goes("a caller registers", func(ctx context.Context) {
		for !s.visit(ctx, s.w.anEdge(own)) && rest(ctx, own.millis(5, 100)) {
		}
	})
}

// visit has the caller connect to an edge and leave again.
func (s *lates) visit(ctx context.Context, e *node) bool {
	ctx, cancel := e.at(ctx)
	defer cancel()
	x, _, err := e.actor.Open(ctx, edge.Hello{Card: agora.Agent{ID: leaver, Name: string(leaver)}, Conn: string(leaver)}, nobody{})
	if err != nil {
		return false
	}
	x.Begin()
	x.Closed(true)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.known = true
	return true
}

// nobody is a connection on which nothing is written.
type nobody struct{}

func (nobody) Wake()              {}
func (nobody) Notify(edge.Notice) {}
func (nobody) Close(edge.Reason)  {}

// call makes some calls at a time.
func (s *lates) call(d *dice) {
	s.register(d)
	for range d.between(1, 2) {
		c := &late{times: 1, after: d.millis(0, 3000), stays: d.between(0, 3) == 0}
		c.to, c.named, c.within = s.w.anAgent(d), d.coin(), time.Hour
		switch d.between(0, 5) {
		case 0:
			c.within = d.millis(100, 4000)
		case 1, 2:
			c.after = d.millis(0, 2*int(grace.Milliseconds()))
		}
		if c.named {
			c.times = d.between(1, 3)
		}
		own := newDice(d.Uint64())
		s.w.mu.Lock()
		known := s.known && c.to.began
		if known {
			c.k = len(s.all)
			s.all = append(s.all, c)
			c.box = call.NewBox(agora.DefaultTenant, leaver, c.key())
		}
		s.w.mu.Unlock()
		if known {
			s.w.goes("a call that is left", func(ctx context.Context) { s.ask(ctx, c, own) })
		}
	}
}

// key is the name of a call; empty for none.
func (c *late) key() string {
	if c.named {
		return c.name()
	}
	return ""
}

func (c *late) name() string { return fmt.Sprint("l-", c.k) }

// ask makes a call, and leaves it; one with a name it makes again.
func (s *lates) ask(ctx context.Context, c *late, d *dice) {
	var err error
	for range c.times {
		e := s.w.anEdge(d)
		try, cancel := e.at(ctx)
		wait := d.millis(1, 3000)
		if c.stays {
			wait = 20 * time.Second
		}
		leaving := time.AfterFunc(wait, cancel)
		var a *call.Answer
		a, err = e.actor.Call(try, leaver, call.Request{Name: c.key(), Within: c.within, Box: c.box, Message: agora.Message{
			ID: c.name(), To: agora.Address{Agent: c.to.id}, Body: fmt.Appendf(nil, `{"late":%d}`, c.k),
		}})
		if err == nil {
			err = s.w.reads(try, a, &c.asked)
			a.Close()
		}
		leaving.Stop()
		cancel()
		s.w.endsWell(&c.asked, err)
		s.w.mu.Lock()
		c.whole = c.whole || err == nil
		s.w.mu.Unlock()
		if !rest(ctx, d.millis(0, 2000)) {
			break
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	c.over, c.err, c.at = true, err, time.Now()
	s.w.note("call %d of %s is left: %v", c.k, c.to.id, err)
}

// heard implements listener: who is asked answers after a while, in whatever session it has then.
func (s *lates) heard(a *agent, m *agora.Message) {
	var body struct {
		Late *int `json:"late"`
	}
	if m.Kind != agora.Request || m.Meta.Call == "" || json.Unmarshal(m.Body, &body) != nil || body.Late == nil || *body.Late >= len(s.all) {
		return
	}
	c, q := s.all[*body.Late], *m
	c.request = &q
	s.w.goes("an answer is thought of", func(ctx context.Context) {
		if !rest(ctx, c.after) {
			return
		}
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if c.reply == nil {
			c.reply = c.to.replyWhole(c.request)
			c.answers = append(c.answers, []*part{c.reply})
			s.w.note("call %d of %s is answered by %d", c.k, c.to.id, c.reply.uid)
		}
	})
}

// read reads what has come to the caller's mailbox.
func (s *lates) read() {
	for {
		some, err := s.mail.Next(s.w.scenes.ctx, 1<<20)
		if err != nil || len(some) == 0 {
			return
		}
		s.w.mu.Lock()
		for _, m := range some {
			s.gap = s.gap || m.Kind == agora.Gap
			s.w.note("the caller's mailbox has %s of %s, again: %v", m.Body, m.From, m.Again)
		}
		s.got = append(s.got, some...)
		s.w.mu.Unlock()
	}
}

// mailed returns how often an answer stands in the caller's mailbox: as it is, and marked as one that may have come
// before.
func (s *lates) mailed(c *late) (plain, marked int) {
	for _, m := range s.got {
		switch {
		case m.From != c.to.id || strings.TrimSpace(string(m.Body)) != fmt.Sprint(c.reply.uid):
		case m.Again:
			marked++
		default:
			plain++
		}
	}
	return plain, marked
}

// missing implements scene: each answer that is said to be stored has come to its caller, or to its mailbox.
func (s *lates) missing() string {
	if s.mail == nil {
		return ""
	}
	s.read()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		if c.reply == nil || !c.reply.receipt || c.reply.lane.doubt || c.whole || s.gap || s.w.lax {
			continue
		}
		if plain, marked := s.mailed(c); plain+marked == 0 {
			return fmt.Sprintf("the answer to call %d of %s, %d, is said to be stored, and is not its caller's (%v)", c.k, c.to.id, c.reply.uid, c.err)
		}
	}
	return ""
}

// judge implements scene: what a caller has taken is not in its mailbox, unless marked, and nothing is there twice but
// marked, as often as its agent has said it.
func (s *lates) judge() {
	if s.mail == nil {
		return
	}
	s.mail.Close()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		if c.reply == nil {
			continue
		}
		switch plain, marked := s.mailed(c); {
		case plain > 1 || marked > max(c.reply.said, 1):
			s.w.failLocked("the answer to call %d of %s, %d, is %d times in the mailbox of its caller, and marked %d times", c.k, c.to.id, c.reply.uid, plain, marked)
		case plain > 0 && c.whole:
			s.w.failLocked("the answer to call %d of %s, %d, is its caller's, and in its mailbox", c.k, c.to.id, c.reply.uid)
		}
	}
}
