package edge

import (
	"context"
	"errors"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// Doors of one dialect have something to tell each other at all edges, which no agent's session is about.

// doorName is the name under which the door of a dialect is asked at one life of an edge.
func doorName(h presence.Holder, dialect string) string {
	return answerName(h) + ".door." + dialect
}

// HearPeers has a door answer what the doors of its dialect at other edges ask, until stop is called, which waits for
// all answers. f runs in a goroutine of its own for each question, and may block; its ctx ends with stop. It is called
// once for a dialect.
func (n *Node) HearPeers(dialect string, f func(ctx context.Context, question []byte) []byte) (stop func(), err error) {
	return n.cfg.Broker.Answer(doorName(n.owner.Holder(), dialect), f)
}

// AskPeers asks the doors of a dialect at all other edges, at the same time, and returns what they answer, in no order.
// An edge that is gone, or has no such door, is passed over; UNAVAILABLE where one that lives has not answered within a
// second, with the answers of the others, or where presence or the log can't be reached.
func (n *Node) AskPeers(ctx context.Context, dialect string, question []byte) (answers [][]byte, err error) {
	edges, err := n.cfg.Presence.Leases.Edges(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex // guards answers and failed
	var failed []error
	for _, h := range edges {
		if h == n.owner.Holder() {
			continue
		}
		all.Go(func() {
			answer, err := n.cfg.Broker.Ask(ctx, doorName(h, dialect), question)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				answers = append(answers, answer)
			case !errors.Is(err, broker.ErrNoEdge):
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	if len(failed) > 0 {
		return answers, &agora.Error{Code: agora.Unavailable, Message: "an edge of the cluster does not answer", RetryAfter: answerTime, Cause: errors.Join(failed...)}
	}
	return answers, nil
}
