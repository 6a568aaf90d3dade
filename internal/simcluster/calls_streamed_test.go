package simcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
)

// uploader is who makes calls whose requests are streams: it has no session.
const uploader agora.AgentID = "uploader"

// uploads are calls whose requests are streams. Who is asked answers at some part, cancels the request, or leaves it
// unanswered until all faults have ended.
type uploads struct {
	w *world

	// Guarded by the world's mu.
	all      []*upload
	released bool
}

// upload is one such call.
type upload struct {
	asked
	most    int // its last part, which ends it
	at      int // the part at which who is asked does something; behind most for never
	cancels bool
	leaves  bool          // its caller goes once it has the answer, whatever is not said yet
	pause   time.Duration // between two parts

	stored    int // the last part that is said to be stored; -1 for none
	cancelled bool
}

// uploadBody is what stands in a part.
type uploadBody struct {
	Upload *int `json:"upload"`
	Part   int  `json:"part"`
}

func newUploads(w *world) scene { return &uploads{w: w} }

func (s *uploads) usual() string { return "calls in parts" }

func (s *uploads) steps() map[string]func(*dice) {
	return map[string]func(*dice){"calls in parts": s.call}
}

// call has a call begin.
func (s *uploads) call(d *dice) {
	c := &upload{most: d.between(1, 9), cancels: d.between(0, 3) == 0, leaves: d.coin(), pause: d.millis(0, 800), stored: -1}
	c.to, c.within, c.at = s.w.anAgent(d), time.Hour, d.between(0, c.most)
	switch d.between(0, 5) {
	case 0:
		c.at = c.most + 1
	case 1:
		c.within = d.millis(100, 8000)
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !c.to.began {
		return
	}
	c.k, c.box = len(s.all), call.NewBox(agora.DefaultTenant, uploader, "")
	s.all = append(s.all, c)
	own := newDice(d.Uint64())
	s.w.goesUntil("a call in parts", &c.stop, func(ctx context.Context) { s.ask(ctx, c, own) })
}

func (c *upload) name() string { return fmt.Sprint("u-", c.k) }

// ask makes the call at some edge, says its request there, and reads its answer.
func (s *uploads) ask(ctx context.Context, c *upload, d *dice) {
	e := s.w.anEdge(d)
	ctx, cancel := e.at(ctx)
	defer cancel()
	if d.between(0, 3) == 0 { // its caller's connection is lost
		defer time.AfterFunc(d.millis(1, 6000), cancel).Stop()
	}
	a, err := e.actor.Call(ctx, uploader, call.Request{Streams: true, Within: c.within, Box: c.box, Message: agora.Message{
		ID: c.name(), To: agora.Address{Agent: c.to.id}, Body: c.body(0),
	}})
	if err == nil {
		s.isStored(c, 0)
		var saying sync.WaitGroup
		saying.Go(func() {
			if !s.say(ctx, c, a) {
				cancel()
			}
		})
		if err = s.w.reads(ctx, a, &c.asked); err == nil && !c.leaves {
			saying.Wait()
		}
		a.Close()
		saying.Wait()
	}
	s.w.endsWell(&c.asked, err)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	c.over, c.whole, c.err, c.asked.at = true, err == nil, err, time.Now()
	s.w.note("call %d in parts of %s has ended: %v", c.k, c.to.id, err)
}

func (c *upload) body(part int) []byte { return fmt.Appendf(nil, `{"upload":%d,"part":%d}`, c.k, part) }

// isStored notes that a part is said to be stored.
func (s *uploads) isStored(c *upload, part int) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	c.stored = part
}

// say says the rest of a request: what is refused for now is said again. It returns false where the request can't go
// on, so that its caller gives the call up.
func (s *uploads) say(ctx context.Context, c *upload, a *call.Answer) bool {
	for part := 1; part <= c.most; {
		if !rest(ctx, c.pause) {
			return false
		}
		m := agora.Message{Part: agora.Chunk, Body: c.body(part)}
		if part == c.most {
			m.Part = agora.End
		}
		err := a.Say(ctx, m)
		if err == nil {
			s.isStored(c, part)
			part++
			continue
		}
		switch code := agora.AsError(err).Code; {
		case ctx.Err() != nil:
			return false
		case code == agora.Unavailable || code == agora.RateLimited:
			s.w.say("part %d of call %d is refused: %v", part, c.k, err)
		case code == agora.StreamAborted || code == agora.Timeout:
			s.w.say("part %d of call %d is not said: %v", part, c.k, err)
			return false
		default:
			s.w.fail("part %d of call %d of %s: %v", part, c.k, c.to.id, err)
			return false
		}
	}
	return true
}

// heard implements listener: who is asked keeps the request, and does what it does at a part.
func (s *uploads) heard(a *agent, m *agora.Message) {
	var body uploadBody
	if m.Kind != agora.Request || m.Stream == "" || json.Unmarshal(m.Body, &body) != nil || body.Upload == nil || *body.Upload >= len(s.all) {
		return
	}
	c := s.all[*body.Upload]
	if m.Part == agora.Start {
		q := *m
		c.request, c.session = &q, a.session
	}
	switch {
	case body.Part != c.at || c.request == nil:
	case c.cancels:
		a.d.tell(upward{verb: does, do: func(ctx context.Context, x *edge.Session) { s.cancel(ctx, c, x) }})
	default:
		s.answer(c)
	}
}

func (s *uploads) answer(c *upload) { c.answers = append(c.answers, c.to.reply(c.request, c.k%5)) }

// cancel has who is asked cancel the request: it is given nothing more of it.
func (s *uploads) cancel(ctx context.Context, c *upload, x *edge.Session) {
	m := agora.Message{Kind: agora.Request, Part: agora.Cancel, Stream: c.name(), To: agora.Address{Agent: uploader}}
	if x.Do(ctx, &edge.Command{Verb: edge.Send, Message: m}) != nil {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	c.cancelled = true
	s.w.note("%s has cancelled the request of call %d", c.to.id, c.k)
	s.w.silent[silentKey(c.to.id, uploader, c.name())] = &silence{at: s.w.count()}
}

// missing implements scene. A few leases after all faults, calls that were not answered are, by who can.
func (s *uploads) missing() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case s.released:
		return s.untold()
	case s.w.scenes.since() < 2*lease:
		return "calls in parts are held"
	}
	s.released = true
	for _, c := range s.all {
		switch {
		case c.over:
		case c.request == nil || c.session != c.to.session || s.w.endless || c.cancelled || len(c.answers) > 0:
			c.stop()
		default:
			c.must = c.to.names != plainly
			s.answer(c)
			s.w.note("call %d in parts of %s is answered", c.k, c.to.id)
		}
	}
	return "answers that were held back are on their way"
}

// untold names a call that nobody waits for, of which who was asked has not been told so; empty for none. mu is held.
func (s *uploads) untold() string {
	for _, c := range s.all {
		t := s.log(c)
		told := t.ended == agora.Abort || t.told > 0 || t.marked
		if c.over && t.last >= 0 && len(c.answers) == 0 && !c.cancelled && !told && !t.gap && !s.w.lax {
			return fmt.Sprintf("%s is not told that nobody waits for call %d in parts (%v)", c.to.id, c.k, c.err)
		}
	}
	return ""
}

// uploaded is what the log of who is asked tells of a call.
type uploaded struct {
	last   int        // part that stands there; -1 for none
	ended  agora.Part // 0: not yet
	told   int        // how often it learns that nobody waits
	marked bool       // it is, by what may stand there twice
	gap    bool
	wrong  string
}

// log reads what the log tells of a call. Its parts stand there from the first, in order and without a hole, and behind
// its end stands nothing, but for what is marked, which may stand there twice.
func (s *uploads) log(c *upload) uploaded {
	t := uploaded{last: -1}
	for _, m := range s.w.logs[agora.ToAgent(agora.DefaultTenant, c.to.id)] {
		var body uploadBody
		switch {
		case m.Kind == agora.Gap:
			t.gap = true
		case m.Kind == agora.Control && m.Meta.Call == c.box:
			if t.marked = t.marked || m.Again; !m.Again {
				t.told++
			}
		case m.Kind != agora.Request || m.From != uploader || m.Stream != c.name():
		case m.Again && (t.ended != 0 || m.Part != agora.Abort && json.Unmarshal(m.Body, &body) == nil && body.Part <= t.last):
		case t.ended != 0:
			t.wrong = fmt.Sprintf("behind its end stands %s", m.Body)
		case m.Part == agora.Abort:
			t.ended = m.Part
		case json.Unmarshal(m.Body, &body) != nil || !t.gap && body.Part != t.last+1 || body.Part <= t.last || (m.Part == agora.End) != (body.Part == c.most):
			t.wrong = fmt.Sprintf("behind part %d stands %s", t.last, m.Body)
		default:
			t.last = body.Part
			if m.Part == agora.End {
				t.ended = m.Part
			}
		}
	}
	return t
}

// judge implements scene: each request stands in the log as far as it was said to be stored, and has one end.
func (s *uploads) judge() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, c := range s.all {
		t := s.log(c)
		switch {
		case t.wrong != "":
			s.w.failLocked("call %d in parts of %s: %s", c.k, c.to.id, t.wrong)
		case t.gap:
		case t.last < c.stored:
			s.w.failLocked("part %d of call %d of %s was said to be stored, and %d is the last", c.stored, c.k, c.to.id, t.last)
		case t.last >= 0 && t.ended == 0 && !s.w.endless:
			s.w.failLocked("the request of call %d in parts of %s has no end", c.k, c.to.id)
		case t.told > 1:
			s.w.failLocked("%s was told %d times that nobody waits for call %d in parts", c.to.id, t.told, c.k)
		case c.must && !c.whole && c.session == c.to.session:
			s.w.failLocked("call %d in parts of %s was answered, and ended with %v", c.k, c.to.id, c.err)
		}
	}
}
