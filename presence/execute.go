package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Execute is a task that one agent has given another and that is not done: while it is open, it says which tools the
// other may call.
type Execute struct {
	Tenant  string
	Callee  agora.AgentID // who was given it
	Caller  agora.AgentID // who has given it
	By      string        // whose the caller is, a principal, for the one who keeps the task in mind: the server does not; empty where nobody has asked
	Request string        // by which the callee names it
	Limited bool          // only Tools may be called
	Tools   []string      // by name; none of them where Limited and empty
	Until   time.Time     // when it is over, whether or not anybody says so; by Config.Now
}

// Bounds of the executes that are open.
const (
	MaxExecutes    = 1024             // of one agent
	ExecuteLasts   = 10 * time.Minute // where Until is not set
	maxExecuteSize = 64 << 10         // bytes of one's names of tools
)

// executeVersion begins every value; the time at which it ends follows, then what it allows.
const executeVersion = "1"

// Executes is which tasks are open.
type Executes struct{ *backend }

// Open writes that a task is given, and the mark of who remembers it: see OpenAgain. Written again it is as it is now.
// RATE_LIMITED where too many are open for the agent, INVALID_REQUEST where it has too many names of tools. One round
// trip.
func (s Executes) Open(ctx context.Context, mark string, e Execute) error {
	c, err := s.write(mark, []Execute{e}, false)
	if err != nil {
		return err
	}
	r, err := s.run(ctx, c)
	return cmp.Or(err, full(r))
}

// OpenAgain writes once more the tasks that somebody has written under a mark, for those agents of which the mark is
// lost: then the server has lost the tasks as well. Those of agents whose mark is there are as they are: what is
// lacking has been closed. An agent that was given too many others meanwhile is left with those. One pipeline.
func (s Executes) OpenAgain(ctx context.Context, mark string, open []Execute) error {
	byKey := map[string][]Execute{}
	for _, e := range open {
		byKey[e.key()] = append(byKey[e.key()], e)
	}
	calls := make([]call, 0, len(byKey))
	for _, of := range byKey {
		c, err := s.write(mark, of, true)
		if err != nil {
			return err
		}
		calls = append(calls, c)
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// full is the error for what the script has answered, if it is one.
func full(r reply) error {
	if r.str() == "full" {
		return &agora.Error{Code: agora.RateLimited, Message: "too many executes are open for this agent", RetryAfter: time.Second}
	}
	return nil
}

// write returns the call that writes the executes of one agent.
func (s Executes) write(mark string, open []Execute, again bool) (call, error) {
	var latest time.Time
	var fields []any
	for _, e := range open {
		until := e.Until
		if until.IsZero() {
			until = s.cfg.Now().Add(ExecuteLasts)
		}
		if until.After(latest) {
			latest = until
		}
		v, err := e.value(until)
		if err != nil {
			return call{}, err
		}
		fields = append(fields, e.field(), until.UnixMilli(), v)
	}
	args := []any{"\x00" + mark, s.cfg.Now().UnixMilli(), MaxExecutes, flag(again), latest.UnixMilli()}
	return call{executeScript, []string{open[0].key()}, append(args, fields...)}, nil
}

// Close writes that tasks are done. One pipeline.
func (s Executes) Close(ctx context.Context, done ...Execute) error {
	p := s.rdb.Pipeline()
	for _, e := range done {
		p.HDel(ctx, e.key(), e.field())
	}
	_, err := p.Exec(ctx)
	return unavailable(err)
}

// Of returns the tasks that an agent was given and that are not done. One that can't be read allows nothing.
// UNAVAILABLE for ErrIncomplete while the server may have lost some. One pipeline.
func (s Executes) Of(ctx context.Context, tenant string, callee agora.AgentID) ([]Execute, error) {
	of := Execute{Tenant: tenant, Callee: callee}
	p := s.rdb.Pipeline()
	all, whole := p.HGetAll(ctx, of.key()), p.Exists(ctx, wholeKey)
	if _, err := p.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	if err := s.surely(ctx, whole.Val() == 1); err != nil {
		return nil, err
	}
	var open []Execute
	for field, v := range all.Val() {
		caller, request, _ := strings.Cut(field, "\x00")
		if caller == "" {
			continue // a mark
		}
		e := of
		e.Caller, e.Request = agora.AgentID(caller), request
		e.read(v)
		if e.Until.IsZero() || e.Until.After(s.cfg.Now()) {
			open = append(open, e)
		}
	}
	return open, nil
}

// key is that of the executes of an agent, field the place of one there.
func (e *Execute) key() string { return keysOf(member(e.Tenant, e.Callee), "").tag + "executes" }

func (e *Execute) field() string { return string(e.Caller) + "\x00" + e.Request }

// value is what is stored of an execute that ends then.
func (e *Execute) value(until time.Time) (string, error) {
	v := executeVersion + strconv.FormatInt(until.UnixMilli(), 10) + " "
	if !e.Limited {
		return v, nil
	}
	size := 0
	for _, t := range e.Tools {
		size += len(t)
	}
	b, err := json.Marshal(append([]string{}, e.Tools...))
	if err != nil || size > maxExecuteSize {
		return "", &agora.Error{Code: agora.InvalidRequest, Message: "allowed_tools is too large", Cause: err}
	}
	return v + string(b), nil
}

// read is the reverse of value. What is of another version comes out without a time, and allows nothing.
func (e *Execute) read(v string) {
	e.Limited = true
	v, ok := strings.CutPrefix(v, executeVersion)
	until, tools, spaced := strings.Cut(v, " ")
	ms, err := strconv.ParseInt(until, 10, 64)
	if !ok || !spaced || err != nil {
		return
	}
	e.Until = time.UnixMilli(ms)
	if tools == "" {
		e.Limited = false
	} else if json.Unmarshal([]byte(tools), &e.Tools) != nil {
		e.Tools = nil
	}
}
