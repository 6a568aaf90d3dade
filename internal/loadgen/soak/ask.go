package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// answerTime is how long a question waits for its reply.
const answerTime = 2 * time.Minute

// answer is what becomes of one question.
type answer struct {
	n    uint64
	flow *verify.Flow       // of a streamed reply
	quit context.CancelFunc // ends the wait: the reply failed, and was told to

	mu      sync.Mutex     // guards the field below
	outcome verify.Outcome // of the reply
}

func (a *answer) set(o verify.Outcome) {
	a.mu.Lock()
	a.outcome = o
	a.mu.Unlock()
	if o != verify.Stored {
		a.quit()
	}
}

func (a *answer) was() verify.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outcome
}

// ask asks questions, one at a time.
func (s *sender) ask(p *pacer) {
	for p.wait(s.run.sending) && !s.over() {
		k := rand.IntN(len(s.asks))
		if l := s.asks[k]; !l.Full() {
			s.question(l, s.run.receivers[k].id)
		}
	}
}

// question asks and checks the reply.
func (s *sender) question(l *verify.Line, to string) {
	t := s.run.tally
	ctx, cancel := context.WithTimeout(s.run.calls, answerTime)
	defer cancel()
	a := &answer{quit: cancel, flow: s.run.newFlow(to + " answers " + s.id)}
	a.n = l.Take(verify.Sent{Kind: request, Load: a})
	m, err := s.c.Request(ctx, to, body(request, s.index, a.n))
	l.Set(a.n, t.outcome(err))
	if err != nil {
		e, coded := errors.AsType[*agora.Error](err)
		late := errors.Is(err, context.DeadlineExceeded) || coded && e.Code == agora.Timeout
		if late && a.was() == verify.Stored {
			t.Missed(reply, s.gaps.Told() > 0, "%s: reply to %d never came", l.Name(), a.n)
		}
		return
	}
	s.check(l, a, m)
}

// check checks a reply, to the end of its stream.
func (s *sender) check(l *verify.Line, a *answer, m *client.Message) {
	t := s.run.tally
	b, ok := parse(m.Payload)
	if !ok || b.Kind != reply || b.N != a.n {
		t.Violated(verify.Altered, "%s: reply to %d is %.100s", l.Name(), a.n, m.Payload)
	}
	t.Arrived(reply, time.Duration(b.At))
	if !m.Stream {
		return
	}
	s.read(s.run.calls, a.flow.Begin(s.id, s.gaps), m)
}

// reply answers a question, one of four as a stream.
func (p *receiver) reply(m *client.Message, a *answer) {
	t, ctx := p.run.tally, p.run.calls
	t.Sent(reply)
	payload := fmt.Sprintf(`{"soak":"reply","n":%d,"at":%d}`, a.n, t.Elapsed())
	if a.n%4 != 0 {
		o := t.outcome(m.Reply(ctx, []byte(payload)))
		t.Resolved(reply, o)
		a.set(o)
		return
	}
	st, err := m.ReplyStream(ctx, []byte(payload))
	o := t.outcome(err)
	t.Resolved(reply, o)
	a.set(o)
	if err != nil {
		a.flow.Set(verify.Unknown)
		return
	}
	p.pour(st, a.flow, nil, 1+rand.IntN(10))
}
