package iat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"
)

// Execute is a task for an agent.
type Execute struct {
	ID           string // of the task; a new one is made where it is empty. Given again under one id, a task is not done twice
	Query        string
	Context      []json.RawMessage // context_fragments: any JSON values, such as [Text] returns
	AllowedTools []string          // that the agent may call for it; nil: all, empty: none
	Deadline     time.Duration     // time it has; 0: what is left of the context of Execute, else what the edge waits at most (10m)
	TraceID      string            // trace that it belongs to; may be empty
}

// payload returns the task as it is asked for.
func (x *Execute) payload() (json.RawMessage, error) {
	members := []member{{"action", "execute"}, {"query", x.Query}}
	if x.Context != nil {
		members = append(members, member{"context_fragments", x.Context})
	}
	if x.AllowedTools != nil {
		members = append(members, member{"allowed_tools", x.AllowedTools})
	}
	return object(members...)
}

// Chunk is a piece of what an agent says.
type Chunk struct {
	Text    string          // payload.text; empty where there is none
	Payload json.RawMessage // as it came
}

func chunkOf(e *Envelope) Chunk {
	var p struct{ Text string }
	_ = json.Unmarshal(e.Payload, &p) // it may be anything
	return Chunk{p.Text, e.Payload}
}

// Result is what a task has come to.
type Result struct {
	Summary string          // result_summary; empty where the agent answered otherwise
	Usage   json.RawMessage // usage_stats; nil for none
	Payload json.RawMessage // of the response, as it came
}

// Run is a task on its way. One goroutine reads it, which is whose calls make it go on: there is no other.
type Run struct {
	id, to string
	answer *answer
	result *Result
	err    error // why there is no result; nil while that isn't known
}

// Execute gives a task to an agent, and returns when the cluster has stored it. The run lasts as long as ctx; where
// that ends before the result is there, the agent learns that the task is cancelled. The caller owes the run a call of
// [Run.Close]. Errors: an [*Error] such as AGENT_NOT_FOUND, that of ctx, [ErrClosed].
func (c *Client) Execute(ctx context.Context, to string, x Execute) (*Run, error) {
	payload, err := x.payload()
	if err != nil {
		return nil, err
	}
	e := &Envelope{
		Header: Header{MsgID: x.ID, To: to}, Metadata: Metadata{DeadlineMS: x.Deadline.Milliseconds(), TraceID: x.TraceID}, Payload: payload,
	}
	a, err := c.ask(ctx, e, nil)
	if err != nil {
		return nil, err
	}
	return &Run{id: e.Header.MsgID, to: to, answer: a}, nil
}

// ID returns the id of the task, which what belongs to it names as its parent.
func (r *Run) ID() string { return r.id }

// Chunks yields what the agent says, piece by piece, as it comes, and ends with the result. What breaks on the way is
// asked for again elsewhere, and continues behind what was yielded. It ends with an error where the run ends without a
// result: see [Run.Result]. A loop that is left can be gone on with by another.
func (r *Run) Chunks() iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for r.result == nil && r.err == nil {
			e, err := r.answer.next()
			if err != nil {
				r.end(err)
				yield(Chunk{}, r.err)
				return
			}
			if e.Header.Type != ChunkType {
				r.result = resultOf(e)
				return
			}
			if !yield(chunkOf(e), nil) {
				return
			}
		}
	}
}

// Result returns what the task has come to. It blocks until that is there, and drops the chunks that come before.
// Errors: an [*Error], of the cluster (TIMEOUT, STREAM_ABORTED where the agent was lost …) or the agent's own, as From
// says; that of the context of Execute; [ErrClosed].
func (r *Run) Result() (*Result, error) {
	for _, err := range r.Chunks() {
		if err != nil {
			return nil, err
		}
	}
	return r.result, r.err
}

// Close ends the run. Where there is no result yet, the agent learns that the task is cancelled, which takes 5 s at
// most. It may be called more than once.
func (r *Run) Close() error {
	if r.result == nil {
		r.end(ErrClosed)
	}
	r.answer.close()
	return nil
}

// end notes why there is no result, and cancels the task where it may still be under way.
func (r *Run) end(err error) {
	if r.err != nil {
		return
	}
	if r.err = err; errors.Is(err, io.EOF) {
		r.err = broke(io.ErrUnexpectedEOF)
	}
	if _, answered := errors.AsType[*Error](err); answered {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	e := &Envelope{Header: Header{Type: Notification, ParentID: r.id, To: r.to}, Payload: json.RawMessage(`{"action":"cancel"}`)}
	if err := r.answer.c.Send(ctx, e); err != nil {
		r.answer.c.cfg.Log.Debug("a task is not cancelled", "agent", r.to, "err", err)
	}
}

// cancelTime is how long a run tries to tell that it is given up.
const cancelTime = 5 * time.Second

func resultOf(e *Envelope) *Result {
	var p struct {
		Summary string          `json:"result_summary"`
		Usage   json.RawMessage `json:"usage_stats"`
	}
	_ = json.Unmarshal(e.Payload, &p) // it may be anything
	return &Result{p.Summary, p.Usage, e.Payload}
}
