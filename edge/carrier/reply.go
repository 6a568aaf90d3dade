package carrier

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// Replies returns an answer that comes as an agent's reply, in which an error that the reply says is a [Failure].
func Replies(a Answer) Answer { return replies{a} }

type replies struct{ Answer }

// Next implements [Answer].
func (r replies) Next(ctx context.Context) (agora.Message, error) {
	m, err := r.Answer.Next(ctx)
	if err != nil || m.Part != agora.Whole && m.Part != agora.End || wire.Media(&m) != "" {
		return m, err
	}
	if e := wire.ReplyError(m.Body); e != nil {
		return agora.Message{}, &Failure{Err: e}
	}
	return m, nil
}
