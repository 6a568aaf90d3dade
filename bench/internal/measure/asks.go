package measure

import (
	"context"
	"fmt"
	"sync"

	"github.com/agora-relay/agora/internal/loadgen"
)

// Asker is an agent of a system that has requests and responses.
type Asker interface {
	loadgen.Agent
	// Ask asks another agent, and returns when its response has come, which has the same text. Receive is not called
	// meanwhile.
	Ask(to string, text []byte) error
	// Echo answers those that ask until the connection has ended, in place of Receive.
	Echo() error
}

// Asks has agents ask others at another server, each one the same, again as soon as it is answered. Rates count
// answers, and their delay is from question to answer.
func Asks(ctx context.Context, t Target, name string, pairs int, cfg Config) (Result, error) {
	var echoes sync.WaitGroup
	defer echoes.Wait()
	c := &calls{target: t, cfg: cfg}
	text := string(loadgen.Text(cfg.Size))
	for i := range pairs {
		asker, err := dialAsker(ctx, t, loadgen.Sends, fmt.Sprintf("%ss%d", name, i), i)
		if err != nil {
			return Result{}, err
		}
		defer asker.Close()
		to := fmt.Sprintf("%sr%d", name, i)
		asked, err := dialAsker(ctx, t, loadgen.Receives, to, i+1)
		if err != nil {
			return Result{}, err
		}
		defer asked.Close()
		echoes.Go(func() { _ = asked.Echo() }) // an asker that is not answered any more says so
		c.all = append(c.all, func(context.Context) error { return asker.Ask(to, []byte(text)) })
	}
	return c.run(ctx)
}

func dialAsker(ctx context.Context, t Target, r loadgen.Role, id string, server int) (Asker, error) {
	a, err := t.Dial(ctx, r, id, server)
	if err != nil {
		return nil, err
	}
	asker, ok := a.(Asker)
	if !ok {
		_ = a.Close() // it is not needed
		return nil, loadgen.ErrNone
	}
	return asker, nil
}
