package broker

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
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

// answerers are those of a Broker. The zero value is ready.
type answerers struct {
	mu sync.Mutex // guards the field below
	m  map[*answerer]struct{}
}

// Ask sends body to the edge that answers under name and returns its answer. It fails with
// ErrNoEdge at once when nobody answers under that name.
func (b *Broker) Ask(ctx context.Context, name string, body []byte) ([]byte, error) {
	m, err := b.nc.RequestWithContext(ctx, jslog.AskPrefix+agora.EncodeToken(name), body)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, ErrNoEdge
	}
	if err != nil {
		return nil, jslog.Unavailable(err)
	}
	return m.Data, nil
}

// Answer answers what is asked of name until stop is called. f runs in a goroutine of its own for
// each question, and may block; its ctx ends with stop, which waits for all of them.
func (b *Broker) Answer(name string, f func(ctx context.Context, body []byte) []byte) (stop func(), err error) {
	a := &answerer{room: make(chan struct{}, maxQuestions)}
	a.ctx, a.stop = context.WithCancel(b.ctx)
	a.sub, err = b.nc.Subscribe(jslog.AskPrefix+agora.EncodeToken(name), func(m *nats.Msg) { a.take(b, m, f) })
	if err != nil {
		a.stop()
		return nil, jslog.Unavailable(err)
	}
	b.answers.add(a)
	return func() { b.answers.end(a) }, nil
}

// noResponders is the status by which NATS itself says that nobody answers.
const noResponders = "503"

// take works on a question. While there is no room it holds up the next ones. A question that crosses the end of
// answering gets the answer that nobody answers.
func (a *answerer) take(b *Broker, m *nats.Msg, f func(context.Context, []byte) []byte) {
	begun := a.begin(func() {
		if err := m.Respond(f(a.ctx, m.Data)); err != nil && a.ctx.Err() == nil {
			b.cfg.Log.Warn("answering", "err", err)
		}
	})
	if !begun {
		nobody := &nats.Msg{Header: nats.Header{"Status": {noResponders}}}
		_ = m.RespondMsg(nobody) // fails on a closed connection
	}
}

// begin waits for room for one more question and starts work on it. It returns false once answering has ended.
func (a *answerer) begin(work func()) bool {
	select {
	case a.room <- struct{}{}:
	case <-a.ctx.Done():
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		<-a.room
		return false
	}
	a.wg.Go(func() {
		defer func() { <-a.room }()
		work()
	})
	return true
}

func (as *answerers) add(a *answerer) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.m == nil {
		as.m = make(map[*answerer]struct{})
	}
	as.m[a] = struct{}{}
}

// end ends one, and waits for what it works on.
func (as *answerers) end(a *answerer) {
	as.mu.Lock()
	delete(as.m, a)
	as.mu.Unlock()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	_ = a.sub.Drain() // fails on a closed connection, which has none
	a.stop()
	a.wg.Wait()
}

// stop ends all.
func (as *answerers) stop() {
	as.mu.Lock()
	var all []*answerer
	for a := range as.m {
		all = append(all, a)
	}
	as.mu.Unlock()
	for _, a := range all {
		as.end(a)
	}
}
