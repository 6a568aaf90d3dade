package iat

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// peer is what hosts and sub-agents have in common: tools, a registration, and a downlink whose requests are answered.
type peer struct {
	*Client
	tools []Tool
	calls map[string]func(context.Context, Call) (any, error)
	bad   error // why it can't register

	serving sync.Mutex // held while it serves
	work    *dispatcher

	mu      sync.Mutex // guards the field below
	running map[asked]context.CancelCauseFunc
}

// asked names a request.
type asked struct{ from, id string }

// Call is a call of a tool.
type Call struct {
	ID            string // of the request
	From          string // who calls
	Execute       string // the task that it belongs to; may be empty
	Tool          string
	Arguments     json.RawMessage // an object; nil for none
	WorkspaceRoot string          // that the caller has declared; may be empty
}

func newPeer(cfg Config) (*peer, error) {
	if cfg.Agent == "" {
		return nil, agora.Errorf(agora.InvalidRequest, "an agent needs an id: Config.Agent is empty")
	}
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &peer{
		Client: c, calls: map[string]func(context.Context, Call) (any, error){}, work: newDispatcher(c.cfg), running: map[asked]context.CancelCauseFunc{},
	}, nil
}

// Close ends everything that continues with [ErrClosed], and returns when Serve and every function that it has called
// have returned; so no such function may call it. It may be called more than once.
func (p *peer) Close() error {
	p.Client.Close()
	p.serving.Lock() // Serve has returned
	defer p.serving.Unlock()
	return p.Client.Close() // and what it has left
}

// OnTool declares a tool, and has f called for each call of it. schema is the JSON Schema of its arguments, empty for
// none: the cluster checks them against that. What f returns becomes the payload of the response, as JSON; an error
// becomes its payload.error, with its code where it is an [*Error] or an [agora.Error], else [Failed]. The context of f
// ends at the request's deadline, when it is cancelled, and with Serve. OnTool is called before Serve.
func (p *peer) OnTool(name, description, schema string, f func(context.Context, Call) (any, error)) {
	t := Tool{Name: name, Description: description}
	if schema != "" {
		t.Input = json.RawMessage(schema)
	}
	if t.Input != nil && !json.Valid(t.Input) {
		p.bad = agora.Errorf(agora.InvalidRequest, "the schema of tool %q is no JSON", name)
	}
	p.tools = append(p.tools, t)
	p.calls[name] = f
}

// job does what an envelope asks for. It returns whether that is done, and not to be done by the program that comes
// next.
type job func() bool

// handler takes an envelope of the downlink: it returns what is to be called for it, after what came before it of the
// same key; nil for nothing.
type handler func(ctx context.Context, e *delivery) (key string, call job)

// service says how a peer serves.
type service struct {
	declares bool // it registers
	take     handler
	made     func() // called at each connection
}

// serve registers where there is something to declare, and takes what comes by the downlink until ctx ends, which is no
// error, or an edge refuses permanently.
func (p *peer) serve(ctx context.Context, s service) error {
	if !p.serving.TryLock() {
		return agora.Errorf(agora.InvalidRequest, "it serves already")
	}
	defer p.serving.Unlock()
	within, cancel := p.within(ctx)
	defer cancel()
	var beside sync.WaitGroup
	if s.declares {
		until, err := p.register(within)
		if err != nil {
			return orNil(ctx, err)
		}
		beside.Go(func() { p.keepRegistered(within, until) })
	}
	d := newDownlink(p.Client)
	d.onMade = s.made
	err := d.run(within, func(e *delivery) bool { return p.dispatch(within, d, e, s.take) })
	cancel()
	beside.Wait()
	p.work.wait()
	d.confirm()
	return orNil(ctx, err)
}

// orNil returns nil where ctx has ended.
func orNil(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// dispatch has an envelope handled. It returns false where ctx ends first.
func (p *peer) dispatch(ctx context.Context, d *downlink, e *delivery, take handler) bool {
	if e.Header.Type == Notification && e.action() == "cancel" {
		p.cancel(asked{e.Header.From, e.Header.ParentID})
		d.done(e)
		return true
	}
	key, call := take(ctx, e)
	if call == nil {
		d.done(e)
		return true
	}
	return p.work.add(ctx, key, e.size, func() {
		if call() {
			d.done(e)
		}
	})
}

// request returns a function that answers a request with what f returns. Its context can be cancelled from now on.
func (p *peer) request(ctx context.Context, e *delivery, f func(context.Context) (any, error)) job {
	name := asked{e.Header.From, e.Header.MsgID}
	life := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() {}
	if d := e.deadline(); d > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, d, context.DeadlineExceeded)
	}
	p.mu.Lock()
	p.running[name] = cancel
	p.mu.Unlock()
	return func() bool {
		defer cancel(nil)
		defer stop()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.running, name)
		}()
		if ctx.Err() != nil {
			return life.Err() == nil
		}
		result, err := f(ctx)
		switch {
		case life.Err() != nil && err != nil:
			return false
		case errors.Is(err, errUndecided), life.Err() == nil && ctx.Err() != nil: // nobody waits for it any more
			return true
		}
		p.respond(life, e, result, err)
		return true
	}
}

// cancel ends the context of a request.
func (p *peer) cancel(name asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for asked, cancel := range p.running {
		if asked.id == name.id && (asked.from == name.from || name.from == cluster) {
			cancel(ErrCancelled)
		}
	}
}

// respond answers a request. It continues for a while after ctx has ended.
func (p *peer) respond(ctx context.Context, e *delivery, result any, err error) {
	payload, fails := payloadOf(result)
	if err == nil {
		err = fails
	}
	if err != nil {
		if payload, fails = object(member{"error", faultFrom(err)}); fails != nil {
			panic(fails) // strings can always be written
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Patience+headTime)
	defer cancel()
	answer := &Envelope{
		Header:   Header{Type: Response, ParentID: e.Header.MsgID, To: e.Header.From},
		Metadata: Metadata{TraceID: e.Metadata.TraceID}, Payload: payload,
	}
	if err := p.Send(ctx, answer); err != nil {
		p.cfg.Log.Warn("a response is not stored", "agent", p.cfg.Agent, "to", e.Header.From, "err", err)
	}
}

// payloadOf returns a result as JSON; an object without members for none.
func payloadOf(result any) (json.RawMessage, error) {
	if result == nil {
		return json.RawMessage(`{}`), nil
	}
	return marshal(result)
}

// calledTool answers a call of a tool.
func (p *peer) calledTool(ctx context.Context, e *delivery) (string, job) {
	return e.execute(), p.request(ctx, e, func(ctx context.Context) (any, error) {
		tool, arguments, ok := wire.ToolCallOf(e.Payload)
		if !ok {
			return nil, agora.Errorf(agora.InvalidRequest, "the call can't be read")
		}
		f := p.calls[tool]
		if f == nil {
			return nil, agora.Errorf(agora.NotFound, "there is no such tool")
		}
		return f(ctx, Call{
			ID: e.Header.MsgID, From: e.Header.From, Execute: e.Header.ParentID, Tool: tool, Arguments: arguments,
			WorkspaceRoot: e.Metadata.WorkspaceRoot,
		})
	})
}

// unknown answers a request of which nothing is known.
func (p *peer) unknown(ctx context.Context, e *delivery) (string, job) {
	return e.Header.MsgID, p.request(ctx, e, func(context.Context) (any, error) {
		return nil, agora.Errorf(agora.InvalidRequest, "this agent takes no such action")
	})
}

// execute names the task that an envelope belongs to; itself where that is none.
func (e *delivery) execute() string {
	if e.Header.ParentID != "" {
		return e.Header.ParentID
	}
	return e.Header.MsgID
}
