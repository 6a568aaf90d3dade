package host

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/mcp/inbox"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config sets up a Host. Client is required, with URLs and Agent.
type Config struct {
	Client  client.Config // OnStatus and OnGap are the host's own; metadata say where it runs
	Spaces  []string      // that it joins at its start
	Version string        // of this program
	// Why asks the cluster's operators' API what became of a message, by its id or position; its error is a sentence.
	// nil: nobody is asked.
	Why    func(ctx context.Context, id string) (any, error)
	Socket string // where Brief asks what waits; see [Socket]. Empty: nowhere
	Log    *slog.Logger
	// Passing is how long another connection has the agent's id before tools fail of it: a hook that looks into the
	// mailbox has it for a moment. 2 s if zero.
	Passing time.Duration
	// Bare leaves out the host's own tools and its inbox: what else is added to the server is all it has.
	Bare bool
}

// Host is an agent whose program is a model. It is an MCP server to the model's host, and has one connection to the
// cluster, which it makes again whenever it is lost.
type Host struct {
	cfg    Config
	link   *link
	inbox  *inbox.Inbox
	feeds  *feeds
	sent   sent
	bell   *bell
	server *mcp.Server
}

// New returns a host. It does nothing before Serve.
func New(cfg Config) *Host {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{cfg: cfg, feeds: &feeds{all: map[string]*feed{}, log: cfg.Log}}
	h.bell = newBell(h)
	h.inbox = inbox.New(inbox.Config{OnNews: h.bell.news})
	own := cfg.Client
	own.Card.Metadata = ownPlace()
	own.OnGap = h.inbox.Lose
	own.Log = cfg.Log
	h.link = newLink(own, cmp.Or(cfg.Passing, 2*time.Second))
	for _, name := range cfg.Spaces {
		h.feeds.all[name] = newFeed(name, startHistory)
	}
	h.server = h.newServer()
	return h
}

// startHistory is how many events of a space a host has at its start.
const startHistory = 20

// ownPlace says where this process runs.
func ownPlace() json.RawMessage {
	name, _ := os.Hostname()
	b, _ := json.Marshal(place{Host: name, PID: os.Getpid()})
	return b
}

// Serve speaks MCP over a transport, and is the agent, until the transport ends or ctx does. Tools of others come from
// a catalog, if it is not nil. What nobody has acknowledged stays in the agent's mailbox. It is called once.
func (h *Host) Serve(ctx context.Context, t mcp.Transport, others Catalog) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { h.link.run(ctx, h.use) })
	work.Go(func() { h.bell.run(ctx) })
	if others != nil {
		if err := others.Prepare(ctx, h.server); err != nil {
			h.cfg.Log.Warn("not all tools of agents are known yet", "err", err)
		}
		work.Go(func() { _ = others.Serve(ctx, h.server) }) // it ends with ctx
	}
	defer context.AfterFunc(ctx, h.bell.hangUp)() // calls that wait for others end with it
	err := h.server.Run(ctx, h.bell.listening(t))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// use has a client receive until it is over.
func (h *Host) use(ctx context.Context, c *client.Client) error {
	defer h.feeds.attach(ctx, c)()
	if h.cfg.Socket != "" {
		defer h.answerAt(ctx, h.cfg.Socket)()
	}
	err := h.inbox.Run(ctx, c)
	if ctx.Err() == nil {
		h.cfg.Log.Warn("the connection has ended; it is made again", "agent", c.Agent(), "err", err)
	}
	return err
}
