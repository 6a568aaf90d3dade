package agenttools

import (
	"cmp"
	"context"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

// Directory is what a [Catalog] asks the directory of agents.
type Directory interface {
	Agents(ctx context.Context) ([]agora.Agent, error)
	AgentCard(ctx context.Context, id string) (agora.Agent, error)
	FindAgents(ctx context.Context, q client.Query) ([]agora.Agent, error)
}

// Agents is the agent in whose name a [Catalog] reads the directory and calls tools; [client.Client] is one.
type Agents interface {
	Directory
	Agent() string
	CallTool(ctx context.Context, to, tool string, arguments any) (*client.Call, error)
}

// Config sets up a [Catalog]. The zero value is ready to use.
type Config struct {
	From           string        // patterns of [path.Match] for the ids of the agents whose tools are offered, separated by commas; empty: all agents. See [CheckPattern]
	Refresh        time.Duration // between two readings of the directory; 5s
	RefreshTimeout time.Duration // for one reading of it; 5s
	CallTimeout    time.Duration // for one call of a tool; 5m
	Log            *slog.Logger  // discards if nil
}

func (c Config) withDefaults() Config {
	c.Refresh = cmp.Or(c.Refresh, 5*time.Second)
	c.RefreshTimeout = cmp.Or(c.RefreshTimeout, 5*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Minute)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// CheckPattern returns an error where a pattern for [Config.From] is malformed. A Catalog takes such a pattern for one
// that no agent matches.
func CheckPattern(from string) error {
	for p := range strings.SplitSeq(from, ",") {
		if _, err := path.Match(strings.TrimSpace(p), ""); err != nil {
			return agora.Errorf(agora.InvalidRequest, "bad pattern %q for agents: *, ? and [a-z] are what it may have", p)
		}
	}
	return nil
}

// maxCalls bounds the calls of tools that are under way at a time; a further one is refused.
const maxCalls = 64

// Catalog keeps the tools of one MCP server in step with the tools of the cluster's agents. Up to [MaxTools] of them
// are tools of the server each; beyond that the server has one tool that finds them and one that calls them.
type Catalog struct {
	agents   Agents
	cfg      Config
	calls    chan struct{} // holds a token for every call under way
	progress time.Duration // at least between two notifications of a call's progress

	refreshing sync.Mutex        // held by who refreshes; guards the four fields below
	known      map[string]*card  // by the id of the agent
	round      uint64            // number of the refresh
	offered    map[string]string // what the server has: fingerprints of tools, by name
	failed     bool              // the directory could not be read

	mu    sync.Mutex // guards the field below
	tools []tool     // all that are known, sorted by name; the slice is never changed, only replaced
}

// New returns a Catalog without tools; Prepare and Serve read the directory.
func New(c Agents, cfg Config) *Catalog {
	return &Catalog{
		agents: c, cfg: cfg.withDefaults(), calls: make(chan struct{}, maxCalls), progress: 250 * time.Millisecond,
		known: make(map[string]*card), offered: make(map[string]string),
	}
}

// Prepare reads the directory once and gives the server the tools, so that the first tools/list has them. It blocks for
// [Config.RefreshTimeout] at most, and is called before the server takes a session. Where it returns an error the
// server works nevertheless: it has the tools that could be read in time, and Serve adds the others.
//
// The server should be made with the capability Tools.ListChanged, as it may have no tool yet when a host connects.
func (t *Catalog) Prepare(ctx context.Context, s *mcp.Server) error { return t.refresh(ctx, s) }

// Serve keeps the tools of the server in step with the directory: it reads the directory at once and then every
// [Config.Refresh]. Hosts are told of changes, and only of changes. While the directory can't be read the tools stay as
// they are. Serve blocks until ctx ends, and returns the cause. The server is that of Prepare.
func (t *Catalog) Serve(ctx context.Context, s *mcp.Server) error {
	for {
		err := t.refresh(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.report(err)
		if !pause.For(ctx, t.cfg.Refresh) {
			return context.Cause(ctx)
		}
	}
}

// report logs that the directory can't be read, and that it can be read again, once each.
func (t *Catalog) report(err error) {
	t.refreshing.Lock()
	defer t.refreshing.Unlock()
	switch {
	case err != nil && !t.failed:
		t.cfg.Log.Warn("can't read the directory of agents; their tools stay as they are", "err", err)
	case err == nil && t.failed:
		t.cfg.Log.Info("the directory of agents can be read again")
	}
	t.failed = err != nil
}

// matches reports whether the tools of an agent are offered: not those of the agent itself.
func (t *Catalog) matches(id string) bool {
	if id == "" || id == t.agents.Agent() {
		return false
	}
	if t.cfg.From == "" {
		return true
	}
	for p := range strings.SplitSeq(t.cfg.From, ",") {
		if ok, err := path.Match(strings.TrimSpace(p), id); ok && err == nil {
			return true
		}
	}
	return false
}

// snapshot returns the tools that are known, sorted by name. The slice is shared and not to be changed.
func (t *Catalog) snapshot() []tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tools
}
