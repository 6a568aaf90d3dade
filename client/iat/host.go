package iat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Host gives tasks to agents, and serves what these ask meanwhile. Its methods may be called at the same time, but for
// those whose names begin with On, which are called before Serve.
type Host struct {
	*peer
	onApproval func(context.Context, Approval) (bool, string, error)
	onThink    func(context.Context, Thought)
	onLog      func(context.Context, LogLine)
}

// Thought is what an agent thinks while it does a task.
type Thought struct {
	From, Execute string // the agent, and the task
	Text          string
}

// LogLine is what an agent notes while it does a task.
type LogLine struct {
	From, Execute  string // the agent, and the task
	Level, Message string
}

// errUndecided says that the one who was asked leaves it to others.
var errUndecided = errors.New("the approval is left to others")

// NewHost returns a host, which connects to nothing yet. Its errors are those of the configuration. The caller owes it
// a call of Close.
func NewHost(cfg Config) (*Host, error) {
	p, err := newPeer(cfg)
	if err != nil {
		return nil, err
	}
	return &Host{peer: p}, nil
}

// OnApproval has f decide what agents ask this host for approval of. The note is for the asker. With an error f leaves
// the decision to others, as a host without such a function does. The context of f ends when the approval expires or
// its asker gives up; approvals wait for nothing else of their task.
func (h *Host) OnApproval(f func(ctx context.Context, a Approval) (approved bool, note string, err error)) {
	h.onApproval = f
}

// OnThink has f called for each thought, those of one task in order.
func (h *Host) OnThink(f func(context.Context, Thought)) { h.onThink = f }

// OnLog has f called for each line of a log, those of one task in order.
func (h *Host) OnLog(f func(context.Context, LogLine)) { h.onLog = f }

// Serve declares the host's tools, and takes what agents ask, think and note, until ctx ends: then it returns nil, once
// every function has returned. A host that offers nothing and wants to hear nothing needs no Serve to Execute. An
// [*Error] is why an edge refuses permanently, such as AGENT_EXISTS where the id is held elsewhere; [ErrClosed] that
// Close was called.
func (h *Host) Serve(ctx context.Context) error { return h.serveUntil(ctx, func() {}) }

// ServeWhile calls f once the host can be asked and told things, and serves until f has returned. It returns what f
// does, or why it can't serve, which ends the context of f.
func (h *Host) ServeWhile(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready := make(chan struct{})
	var once sync.Once
	var serving sync.WaitGroup
	serving.Go(func() {
		err := h.serveUntil(ctx, func() { once.Do(func() { close(ready) }) })
		cancel(cmp.Or(err, errServed))
	})
	defer serving.Wait()
	select {
	case <-ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := f(ctx)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	cancel(errServed)
	return err
}

// errServed ends what is served no more.
var errServed = errors.New("nothing is served any more")

func (h *Host) serveUntil(ctx context.Context, made func()) error {
	return h.serve(ctx, service{declares: len(h.tools) > 0 || h.cfg.Root != "", take: h.take, made: made})
}

func (h *Host) take(ctx context.Context, e *delivery) (string, job) {
	action := e.action()
	switch {
	case e.Header.Type == Request && action == "call_tool":
		return h.calledTool(ctx, e)
	case e.Header.Type == Request && action == "require_approval":
		return h.approve(ctx, e)
	case e.Header.Type == Request:
		return h.unknown(ctx, e)
	case e.Header.Type == Notification && action == "think" && h.onThink != nil:
		var p struct {
			Text string `json:"thought_text"`
		}
		_ = json.Unmarshal(e.Payload, &p) // the cluster has checked it
		return e.execute(), func() bool {
			h.onThink(ctx, Thought{e.Header.From, e.Header.ParentID, p.Text})
			return true
		}
	case e.Header.Type == Notification && action == "log" && h.onLog != nil:
		var p struct{ Level, Message string }
		_ = json.Unmarshal(e.Payload, &p)
		return e.execute(), func() bool {
			h.onLog(ctx, LogLine{e.Header.From, e.Header.ParentID, p.Level, p.Message})
			return true
		}
	}
	return "", nil
}

// approve answers a request for approval.
func (h *Host) approve(ctx context.Context, e *delivery) (string, job) {
	if h.onApproval == nil {
		return "", nil
	}
	a := Approval{
		ID: e.Header.MsgID, Agent: e.Header.From, To: h.cfg.Agent, State: Pending, Payload: e.Payload, Asked: e.Header.Timestamp, Execute: e.Header.ParentID,
	}
	return e.Header.MsgID, h.request(ctx, e, func(ctx context.Context) (any, error) {
		approved, note, err := h.onApproval(ctx, a)
		if err != nil {
			h.cfg.Log.Info("an approval is left to others", "agent", h.cfg.Agent, "err", err)
			return nil, errUndecided
		}
		return struct {
			Approved bool   `json:"approved"`
			Note     string `json:"note,omitempty"`
		}{approved, note}, nil
	})
}
