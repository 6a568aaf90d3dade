package iat

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/agora-relay/agora"
)

// Task is a task that an agent is given. Its methods may be called at the same time, until the function that was given
// it has returned.
type Task struct {
	Execute            // its ID is what all that belongs to it names as its parent
	From        string // who has given it
	Redelivered bool   // a program under this id may have been given it before

	root  string // workspace_root that the host has declared
	agent *Agent
	ctx   context.Context
	out   *pieces

	mu    sync.Mutex // guards the field below
	space *Workspace
}

// Chunk says a piece of the answer. It returns at once while less than 1 MiB waits to be sent: one piece is under way
// at a time, and what comes meanwhile goes with the next one, cut between characters. An error is that of an earlier
// piece: nothing more is sent then.
func (t *Task) Chunk(text string) error { return t.out.write(text) }

// Write is [Task.Chunk] for an [io.Writer]'s users.
func (t *Task) Write(p []byte) (int, error) {
	if err := t.out.write(string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Think tells the host what the agent thinks. A host that listens to nothing is told nothing, which is no error. It
// returns when the cluster has stored it.
func (t *Task) Think(text string) error {
	return t.tell(member{"action", "think"}, member{"thought_text", text})
}

// Log notes something for the host, as [Task.Think] does. The level is any word, such as "info".
func (t *Task) Log(level, message string) error {
	return t.tell(member{"action", "log"}, member{"level", level}, member{"message", message})
}

// tell sends a notification.
func (t *Task) tell(members ...member) error {
	payload, err := object(members...)
	if err != nil {
		return err
	}
	if err = t.agent.Send(t.ctx, t.envelope(Notification, payload)); unheard(err) {
		return nil
	}
	return err
}

// unheard reports whether there is nobody whom the cluster could tell.
func unheard(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.From == cluster && (e.Code == agora.AgentNotFound || e.Code == agora.AgentOffline)
}

// CallTool has the host call one of its tools, and returns the payload of its response, once what was said before is
// sent. Arguments are any value that is a JSON object; nil for none. Errors: an [*Error], such as FORBIDDEN for a tool
// that is not allowed for this task, or that the host has answered; that of ctx.
func (t *Task) CallTool(ctx context.Context, name string, arguments any) (json.RawMessage, error) {
	if err := t.out.flush(); err != nil {
		return nil, err
	}
	payload, err := toolCall(name, arguments)
	if err != nil {
		return nil, err
	}
	return t.agent.payloadFrom(ctx, t.From, t.ID, t.TraceID, payload)
}

// RequireApproval asks for approval of what the agent is about to do, once what was said before is sent, and returns
// what the host, or whoever else may, has decided: false where nobody has in time. Where the host listens to nothing,
// whoever else may is asked alone. It blocks until then. Errors: an [*Error], that of ctx.
func (t *Task) RequireApproval(ctx context.Context, what any) (bool, error) {
	if err := t.out.flush(); err != nil {
		return false, err
	}
	payload, err := object(member{"action", "require_approval"}, member{"what", what})
	if err != nil {
		return false, err
	}
	e := t.envelope(Request, payload)
	answer, err := t.agent.response(ctx, e, undecided)
	if unheard(err) {
		e.Header.MsgID, e.Header.To = "", cluster
		answer, err = t.agent.response(ctx, e, undecided)
	}
	if err != nil {
		return false, err
	}
	var decision struct{ Approved bool }
	if err := json.Unmarshal(answer.Payload, &decision); err != nil {
		return false, &Error{Code: agora.InvalidRequest, Message: "the decision can't be read", From: answer.Header.From, Cause: err}
	}
	return decision.Approved, nil
}

// undecided reports whether an edge has waited as long as it may: asked again, it continues.
func undecided(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == agora.Timeout && (e.From == cluster || e.From == "")
}

// Workspace returns the directory that the task may use: the one that the host has declared, which has to lie within
// the agent's own (Config.Root) where that is set, else the agent's own. It is the same each time, and is closed when
// the task ends. NOT_FOUND where neither has declared one, FORBIDDEN where the host's lies outside.
func (t *Task) Workspace() (*Workspace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.space != nil {
		return t.space, nil
	}
	w, err := openWorkspace(t.agent.cfg.Root, t.root)
	t.space = w
	return w, err
}

// envelope returns an envelope to the host that belongs to the task.
func (t *Task) envelope(typ Type, payload json.RawMessage) *Envelope {
	return &Envelope{Header: Header{Type: typ, ParentID: t.ID, To: t.From}, Metadata: Metadata{TraceID: t.TraceID}, Payload: payload}
}

func (t *Task) sendChunk(text string) error {
	payload, err := object(member{"text", text})
	if err != nil {
		return err
	}
	return t.agent.Send(t.ctx, t.envelope(ChunkType, payload))
}

// end sends what is left, and closes the workspace.
func (t *Task) end() error {
	err := t.out.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.space != nil {
		t.space.Close() // which was only read and written through files of its own
	}
	return err
}
