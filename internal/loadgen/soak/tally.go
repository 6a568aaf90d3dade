package soak

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// What is counted apart.
const (
	message verify.Kind = "message" // one-shots
	stream  verify.Kind = "stream"  // beginnings of streams, between agents
	chunk   verify.Kind = "chunk"   // parts of streams, of events and of replies
	request verify.Kind = "request" // questions
	reply   verify.Kind = "reply"   // answers to them
	event   verify.Kind = "event"   // in spaces, streamed or not
)

// Ended is a violation: a client gave up its agent by itself.
const Ended = "ended"

// tally counts for a run, the errors of the client's calls too.
type tally struct {
	*verify.Tally

	mu     sync.Mutex        // guards the field below
	errors map[string]uint64 // by code
}

func newTally() *tally {
	return &tally{Tally: verify.New(time.Now, message, stream, chunk, request, reply, event), errors: map[string]uint64{}}
}

// newFlow makes a stream of the run.
func (r *Run) newFlow(name string) *verify.Flow {
	return verify.NewFlow(r.tally.Tally, name, verify.StreamKinds{Chunk: chunk, Stream: stream})
}

// outcome returns what an error of the client says of what was sent, and counts it.
func (t *tally) outcome(err error) verify.Outcome {
	if err == nil {
		return verify.Stored
	}
	o, name := meaning(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors[name]++
	return o
}

// told returns how often calls failed, by code.
func (t *tally) told() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.errors)
}

// meaning returns whether an error says that nothing was stored, and its name.
func meaning(err error) (verify.Outcome, string) {
	e, ok := errors.AsType[*agora.Error](err)
	switch {
	case errors.Is(err, client.ErrUnknown):
		return verify.Unknown, "unknown"
	case errors.Is(err, client.ErrCancelled):
		return verify.Unknown, "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return verify.Unknown, "given up"
	case !ok:
		return verify.Unknown, "client over"
	}
	switch e.Code {
	case agora.StreamAborted, agora.Timeout, agora.AgentExists, agora.Unauthorized:
		return verify.Unknown, string(e.Code)
	}
	return verify.Refused, string(e.Code)
}
