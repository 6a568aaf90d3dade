package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	dialTime   = 10 * time.Second // for one attempt to be the agent
	firstWait  = 5 * time.Second  // that a tool waits for the first connection
	minRedial  = 200 * time.Millisecond
	maxRedial  = 5 * time.Second
	lookupTime = 2 * time.Second // for who has the agent's id
	maxHolder  = 200             // bytes of what is told of that one
)

// link keeps a client that is the agent: it dials again what can't be the agent now, or can't be it any more.
type link struct {
	cfg     client.Config
	passing time.Duration // that another one has the id before callers are told

	mu      sync.Mutex // guards the fields below
	c       *client.Client
	err     error     // why there is no client, or its connection is lost; nil while it is connected
	holder  string    // who has the id, where another one has
	held    time.Time // since when another one has the id, as far as this knows; zero while none has
	edge    string
	changed chan struct{} // closed when c or err changes
}

func newLink(cfg client.Config, passing time.Duration) *link {
	l := &link{cfg: cfg, passing: passing, err: errors.New("no edge has been reached yet"), changed: make(chan struct{})}
	l.cfg.OnStatus = l.status
	return l
}

// status takes what a client says of its connection.
func (l *link) status(s client.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.edge = s.Err, s.Edge
	l.change()
}

// change is called with the lock held.
func (l *link) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// run has use called with each client that is the agent, one after the other, until ctx ends. use returns when its
// client is over.
func (l *link) run(ctx context.Context, use func(context.Context, *client.Client) error) {
	for wait := minRedial; ctx.Err() == nil; wait = min(2*wait, maxRedial) {
		dialling, cancel := context.WithTimeout(ctx, dialTime)
		c, err := client.Dial(dialling, l.cfg)
		cancel()
		if err == nil {
			l.set(c, nil, "")
			err = use(ctx, c)
			c.Close()
			wait = minRedial
		}
		holder := ""
		if agora.AsError(err).Code == agora.AgentExists {
			holder = l.who(ctx)
		}
		l.set(nil, err, holder)
		if !pause.For(ctx, wait) {
			return
		}
	}
}

func (l *link) set(c *client.Client, err error, holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c, l.err, l.holder = c, err, holder
	switch {
	case err == nil || agora.AsError(err).Code != agora.AgentExists:
		l.held = time.Time{}
	case l.held.IsZero():
		l.held = time.Now()
	}
	l.change()
}

// who asks the directory who has the agent's id; empty where nobody tells.
func (l *link) who(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	cfg := l.cfg
	cfg.Agent, cfg.OnStatus, cfg.OnGap = "", nil, nil
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return ""
	}
	defer c.Close()
	a, err := c.AgentCard(ctx, l.cfg.Agent)
	if err != nil {
		return ""
	}
	return describe(a)
}

// describe says in a few words who has an agent's id, by what that says of itself.
func describe(a agora.Agent) string {
	var at place
	_ = json.Unmarshal(a.Metadata, &at) // where it is another program's, it says nothing
	text := cmp.Or(a.Type, "agent")
	if at.Host != "" {
		text = fmt.Sprintf("process %d on %s", at.PID, at.Host)
	}
	if a.Description != "" {
		text += ", " + a.Description
	}
	if !a.RegisteredAt.IsZero() {
		text += ", since " + a.RegisteredAt.UTC().Format(time.RFC3339)
	}
	head, _ := cut(text, 0, maxHolder)
	return head
}

// place is where a host runs, as the metadata of its agent have it.
type place struct {
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
}

// client returns the client that is the agent, waiting a while for the first one. Its error is a sentence for a model.
func (l *link) client(ctx context.Context) (*client.Client, error) {
	late := time.NewTimer(firstWait)
	defer late.Stop()
	for {
		l.mu.Lock()
		c, changed, held := l.c, l.changed, l.held
		l.mu.Unlock()
		if c != nil {
			return c, nil
		}
		if !held.IsZero() {
			late.Reset(l.passing - time.Since(held))
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, l.trouble()
		case <-ctx.Done():
			return nil, l.trouble()
		}
	}
}

// standing says how the connection stands.
func (l *link) standing() (edge string, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.edge, l.c != nil && l.err == nil
}
