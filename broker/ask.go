package broker

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
)

// ErrNoEdge means that nobody answers under a name.
var ErrNoEdge = errors.New("no edge answers under that name")

// maxQuestions is how many questions one answerer works on at a time; more wait.
const maxQuestions = 256

// answerer answers what is asked of one name.
type answerer struct {
	sub  *nats.Subscription
	ctx  context.Context
	stop context.CancelFunc
	room chan struct{} // bounds the questions being worked on

	mu   sync.Mutex // guards the fields below
	over bool       // no question is begun any more
	wg   sync.WaitGroup
}

// Ask sends body to the edge that answers under name and returns its answer. It fails with
// ErrNoEdge at once when nobody answers under that name.
func (b *Broker) Ask(ctx context.Context, name string, body []byte) ([]byte, error) {
	m, err := b.nc.RequestWithContext(ctx, askPrefix+agora.EncodeToken(name), body)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, ErrNoEdge
	}
	if err != nil {
		return nil, b.unavailable(err)
	}
	return m.Data, nil
}

// Answer answers what is asked of name until stop is called. f runs in a goroutine of its own for
// each question, and may block; its ctx ends with stop, which waits for all of them.
func (b *Broker) Answer(name string, f func(ctx context.Context, body []byte) []byte) (stop func(), err error) {
	a := &answerer{room: make(chan struct{}, maxQuestions)}
	a.ctx, a.stop = context.WithCancel(b.ctx)
	a.sub, err = b.nc.Subscribe(askPrefix+agora.EncodeToken(name), func(m *nats.Msg) { a.take(b, m, f) })
	if err != nil {
		a.stop()
		return nil, b.unavailable(err)
	}
	b.answersMu.Lock()
	b.answers[a] = struct{}{}
	b.answersMu.Unlock()
	return func() { b.endAnswer(a) }, nil
}

// take begins to work on a question. While there is no room it holds up the next ones.
func (a *answerer) take(b *Broker, m *nats.Msg, f func(context.Context, []byte) []byte) {
	select {
	case a.room <- struct{}{}:
	case <-a.ctx.Done():
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		<-a.room
		return
	}
	a.wg.Go(func() {
		defer func() { <-a.room }()
		if err := m.Respond(f(a.ctx, m.Data)); err != nil && a.ctx.Err() == nil {
			b.cfg.Log.Warn("answering", "err", err)
		}
	})
}

func (b *Broker) endAnswer(a *answerer) {
	b.answersMu.Lock()
	delete(b.answers, a)
	b.answersMu.Unlock()
	_ = a.sub.Unsubscribe() // fails on a closed connection, which has none
	a.stop()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.wg.Wait()
}

func (b *Broker) stopAnswers() {
	b.answersMu.Lock()
	var all []*answerer
	for a := range b.answers {
		all = append(all, a)
	}
	b.answersMu.Unlock()
	for _, a := range all {
		b.endAnswer(a)
	}
}
