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
)

// answerTime is how long a question waits for its reply.
const answerTime = 2 * time.Minute

// answer is what becomes of one question.
type answer struct {
	n    uint64
	flow *flow              // of a streamed reply
	quit context.CancelFunc // ends the wait: the reply failed, and was told to

	mu     sync.Mutex
	result result // of the reply
}

func (a *answer) set(r result) {
	a.mu.Lock()
	a.result = r
	a.mu.Unlock()
	if r != stored {
		a.quit()
	}
}

func (a *answer) was() result {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.result
}

// ask asks questions, one at a time.
func (s *sender) ask(p *pacer) {
	for p.wait(s.run.sending) && !s.over() {
		k := rand.IntN(len(s.asks))
		if l := s.asks[k]; !l.full() {
			s.question(l, s.run.receivers[k].id)
		}
	}
}

// question asks and checks the reply.
func (s *sender) question(l *line, to string) {
	t := s.run.tally
	ctx, cancel := context.WithTimeout(s.run.calls, answerTime)
	defer cancel()
	a := &answer{quit: cancel, flow: &flow{tally: t, name: to + " answers " + s.id}}
	a.n = l.take(request, a)
	m, err := s.c.Request(ctx, to, body(request, s.index, a.n))
	l.set(a.n, t.outcome(err))
	if err != nil {
		e, coded := errors.AsType[*agora.Error](err)
		late := errors.Is(err, context.DeadlineExceeded) || coded && e.Code == agora.Timeout
		if late && a.was() == stored {
			t.lose(reply, s.gaps.told() > 0, "%s: reply to %d never came", l.name, a.n)
		}
		return
	}
	s.check(l, a, m)
}

// check checks a reply, to the end of its stream.
func (s *sender) check(l *line, a *answer, m *client.Message) {
	t := s.run.tally
	b, ok := parse(m.Payload)
	if !ok || b.Kind != reply.String() || b.N != a.n {
		t.violated(Altered, "%s: reply to %d is %.100s", l.name, a.n, m.Payload)
	}
	t.arrived(reply, time.Duration(b.At))
	if !m.Stream {
		return
	}
	s.read(s.run.calls, a.flow.begin(s.id, s.gaps), m)
}

// reply answers a question, one of four as a stream.
func (p *receiver) reply(m *client.Message, a *answer) {
	t, ctx := p.run.tally, p.run.calls
	t.counts[reply].sent.Add(1)
	payload := fmt.Sprintf(`{"soak":"reply","n":%d,"at":%d}`, a.n, t.clock())
	if a.n%4 != 0 {
		r := t.outcome(m.Reply(ctx, []byte(payload)))
		t.result(reply, r)
		a.set(r)
		return
	}
	st, err := m.ReplyStream(ctx, []byte(payload))
	r := t.outcome(err)
	t.result(reply, r)
	a.set(r)
	if err != nil {
		a.flow.set(unknown)
		return
	}
	p.pour(st, a.flow, nil, 1+rand.IntN(10))
}
