package tools

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// GuardConfig sets up a Guard. The zero value holds calls to what their callees have declared, and to nothing else.
type GuardConfig struct {
	Config
	Presence *presence.Store           // where open tasks stand; tasks limit nothing if nil. Used, not owned
	Now      func() time.Time          // of the cluster; needed with Presence
	Root     func(*agora.Agent) string // the workspace that an agent has declared; empty for none. Nobody has one if nil
	Resolve  bool                      // links are followed where the edge sees the workspace
	TaskTime time.Duration             // how long a task without a deadline stays open at most; 10m
	Log      *slog.Logger              // discards if nil
}

// Guard holds each call of a tool, whatever its door, to what its callee has declared, to the task in whose name it
// comes, and to the workspaces of both. Its methods may be called at the same time.
type Guard struct {
	*Checker
	cfg    GuardConfig
	ledger *Ledger // nil without presence
}

// NewGuard returns a Guard.
func NewGuard(cfg GuardConfig) *Guard {
	g := &Guard{Checker: New(cfg.Config), cfg: cfg}
	g.cfg.TaskTime = cmp.Or(cfg.TaskTime, presence.ExecuteLasts)
	g.cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Presence != nil {
		g.ledger = NewLedger(cfg.Presence, cfg.Now, g.cfg.Log)
	}
	return g
}

// Call is a call of a tool.
type Call struct {
	Tenant    string
	By        string      // the principal that makes it, whose budget the checks are taken from
	Caller    agora.Agent // its card; its id alone where it is not in the directory
	Callee    agora.Agent // likewise
	Parent    string      // the task in whose name it comes; may be empty
	Tool      string
	Arguments []byte // JSON; nil for none
	Beside    []byte // JSON that goes with them, in which paths are to lie in the workspaces too; nil for none

	Open  []presence.Execute // the tasks that its caller was given and has not done, where that is Known; else presence is asked
	Known bool
}

// CheckTool returns nil where a call may be made. NOT_FOUND where its callee has declared tools, but not this one;
// FORBIDDEN where no open task allows it; a *[Refusal] where the arguments do not fit, or a path lies outside of a
// workspace; UNAVAILABLE while presence can't tell; RATE_LIMITED where the checks of its principal have taken too much
// time. A round trip, and with links the disk is read.
func (g *Guard) CheckTool(ctx context.Context, c Call) error {
	schema, err := g.declared(&c.Callee, c.Tool)
	if err == nil && schema != nil {
		err = g.within(ctx, &c, func() error { return g.CheckCall(c.Callee, c.Tool, c.Arguments) })
	}
	if err != nil {
		return err
	}
	open := c.Open
	if !c.Known {
		var err error
		if open, err = g.Tasks(ctx, c.Tenant, c.Caller.ID); err != nil {
			return err
		}
	}
	if g.ledger != nil {
		if err := g.CheckAllowed(open, Asked{Caller: c.Caller.ID, Addressee: c.Callee.ID, Parent: c.Parent, Tool: c.Tool}); err != nil {
			return err
		}
	}
	if g.cfg.Root == nil {
		return nil
	}
	roots := []string{g.cfg.Root(&c.Caller), g.cfg.Root(&c.Callee)}
	if roots[0] == "" && roots[1] == "" {
		return nil
	}
	return g.within(ctx, &c, func() error {
		if err := g.CheckPaths(roots, schema, c.Arguments, g.cfg.Resolve); err != nil {
			return err
		}
		return g.CheckPaths(roots, nil, c.Beside, g.cfg.Resolve)
	})
}

// within checks something of a call within its principal's time.
func (g *Guard) within(ctx context.Context, c *Call, f func() error) error {
	return g.Within(ctx, c.Tenant, c.By, c.Caller.ID, f)
}

// Tasks returns the tasks that an agent was given and has not done. UNAVAILABLE while presence can't tell. A round
// trip.
func (g *Guard) Tasks(ctx context.Context, tenant string, of agora.AgentID) ([]presence.Execute, error) {
	if g.ledger == nil {
		return nil, nil
	}
	open, err := g.cfg.Presence.Executes.Of(ctx, tenant, of)
	if err != nil {
		return nil, agora.AsError(err)
	}
	return open, nil
}

// Give writes that a task is given: from then on, and until its deadline, which is Until where there is one, it limits
// which tools its callee may call. Errors are those of [Ledger.Open].
func (g *Guard) Give(ctx context.Context, e presence.Execute) error {
	if g.ledger == nil {
		return nil
	}
	now := g.cfg.Now()
	switch last := now.Add(g.cfg.TaskTime); {
	case e.Until.IsZero() || e.Until.After(last):
		e.Until = last
	case !e.Until.After(now):
		e.Until = now.Add(time.Millisecond)
	}
	return g.ledger.Open(ctx, e)
}

// Done writes that a task is done, of which Tenant, Callee, Caller and Request count. Where it was none nothing
// happens. Errors are those of [Ledger.Close].
func (g *Guard) Done(ctx context.Context, e presence.Execute) error {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.Close(ctx, e)
}

// Restore writes again what presence has lost of the tasks that this edge has written: see [Ledger.Restore].
func (g *Guard) Restore(ctx context.Context) error {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.Restore(ctx)
}

// Run looks now and then whether presence has lost tasks, until ctx is over.
func (g *Guard) Run(ctx context.Context) {
	if g.ledger == nil {
		<-ctx.Done()
		return
	}
	g.ledger.Run(ctx)
}
