package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/agora-relay/agora/mcp/inbox"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	channelCapability = "claude/channel" // by which a host takes what a server says by itself into its model's context
	channelMethod     = "notifications/claude/channel"
	bellPause         = time.Second // between two notifications
	maxRung           = 20          // messages that one notification may speak of
	maxPreview        = 300         // bytes of a message that a notification has
)

// bell tells the model's host that messages have come. Nothing depends on it: a message stays in the mailbox, told or
// not.
type bell struct {
	h    *Host
	wake chan struct{} // holds a token while there is something to tell

	mu      sync.Mutex // guards the fields below
	conn    *heardConn
	channel bool // the host takes channelMethod
	rung    []inbox.Item
	more    int // messages besides
}

func newBell(h *Host) *bell { return &bell{h: h, wake: make(chan struct{}, 1)} }

// news notes a message that has come. It never blocks.
func (b *bell) news(it inbox.Item) {
	b.mu.Lock()
	if len(b.rung) < maxRung {
		b.rung = append(b.rung, it)
	} else {
		b.more++
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run tells what has come until ctx ends.
func (b *bell) run(ctx context.Context) {
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		b.ring(ctx)
		if !pause.For(ctx, bellPause) {
			return
		}
	}
}

// ring tells the host once of all that has come since the last time.
func (b *bell) ring(ctx context.Context) {
	b.mu.Lock()
	rung, more, conn, channel := b.rung, b.more, b.conn, b.channel
	b.rung, b.more = nil, 0
	b.mu.Unlock()
	rung = b.waiting(rung)
	if conn == nil || len(rung) == 0 {
		return
	}
	if channel {
		params, err := json.Marshal(announcement(rung, more))
		if err == nil {
			err = conn.Write(ctx, &jsonrpc.Request{Method: channelMethod, Params: params})
		}
		if err != nil && ctx.Err() == nil {
			b.h.cfg.Log.Debug("the host was not told of a message", "err", err)
		}
	}
	// Should this fail the host's reading has ended, and so will Serve.
	_ = b.h.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: inboxResource.URI})
}

// waiting returns those of the messages that still wait to be read: no answer that a tool waits for, or has given.
func (b *bell) waiting(rung []inbox.Item) []inbox.Item {
	there := map[uint64]bool{}
	for _, it := range b.h.inbox.Peek() {
		there[it.Seq] = true
	}
	return slices.DeleteFunc(rung, func(it inbox.Item) bool { return !there[it.Seq] })
}

// channelParams are those of channelMethod.
type channelParams struct {
	Content string            `json:"content"`
	Meta    map[string]string `json:"meta"`
}

// announcement says which messages have come.
func announcement(rung []inbox.Item, more int) channelParams {
	if len(rung)+more > 1 {
		var from []string
		for _, it := range rung {
			if sender := quote.ID(it.From); !slices.Contains(from, sender) {
				from = append(from, sender)
			}
		}
		return channelParams{
			Content: fmt.Sprintf("%d messages have come, from %s. Read them with agora_inbox.", len(rung)+more, strings.Join(from, ", ")),
			Meta:    map[string]string{"messages": strconv.Itoa(len(rung) + more)},
		}
	}
	it := rung[0]
	text, next := cut(textOf(it), 0, maxPreview)
	if next > 0 {
		text += "…"
	}
	return channelParams{
		Content: fmt.Sprintf("A %s from agent %s: %s\nTake it with agora_inbox (ack %d).", kindOf(it), quote.ID(it.From), strings.TrimSpace(text), it.Seq),
		Meta:    map[string]string{"from": it.From, "seq": strconv.FormatUint(it.Seq, 10), "kind": kindOf(it)},
	}
}

// kindOf says what a message is, in a word.
func kindOf(it inbox.Item) string {
	switch {
	case it.IsReply:
		return "reply"
	case it.RequestID != "":
		return "request"
	}
	return "message"
}

// meets notes what a host says of itself.
func (b *bell) meets(p *mcp.InitializeParams) {
	if p == nil {
		return
	}
	takes := p.ClientInfo != nil && strings.HasPrefix(p.ClientInfo.Name, "claude-code")
	if c := p.Capabilities; c != nil {
		_, has := c.Experimental[channelCapability]
		takes = takes || has
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.channel = takes
}

// confirm is called when a call of a tool begins. Where no other call is under way the host has the results of all that
// went before: the replies in these were seen.
func (b *bell) confirm() {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil && conn.alone() {
		b.h.inbox.AckGiven()
	}
}

// listening returns a transport whose connection the bell knows.
func (b *bell) listening(t mcp.Transport) mcp.Transport { return heardTransport{t, b} }

// hangUp closes the connection to the host, where there is one: what its tools wait for is for nobody then.
func (b *bell) hangUp() {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

type heardTransport struct {
	mcp.Transport
	b *bell
}

func (t heardTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &heardConn{Connection: c, open: map[string]bool{}, meets: t.b.meets}
	t.b.mu.Lock()
	t.b.conn = conn
	t.b.mu.Unlock()
	return conn, nil
}

// heardConn is a connection that knows which calls of tools have no answer yet.
type heardConn struct {
	mcp.Connection
	meets func(*mcp.InitializeParams)

	mu   sync.Mutex
	open map[string]bool // by id, as JSON
}

// Read notes calls of tools, and of who the host is.
func (c *heardConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if q, ok := m.(*jsonrpc.Request); ok && err == nil {
		switch q.Method {
		case "initialize":
			var p mcp.InitializeParams
			if json.Unmarshal(q.Params, &p) == nil {
				c.meets(&p)
			}
		case "tools/call":
			c.note(q.ID, true)
			c.meetAgain(q.Params)
		case "notifications/cancelled":
			var p struct {
				RequestID json.RawMessage `json:"requestId"`
			}
			if json.Unmarshal(q.Params, &p) == nil { // it may have no answer
				c.mu.Lock()
				delete(c.open, string(p.RequestID))
				c.mu.Unlock()
			}
		}
	}
	return m, err
}

// meetAgain takes what a request says of its host, where there was no handshake.
func (c *heardConn) meetAgain(params json.RawMessage) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || p.Meta[mcp.MetaKeyClientInfo] == nil {
		return
	}
	var i mcp.InitializeParams
	if json.Unmarshal(p.Meta[mcp.MetaKeyClientInfo], &i.ClientInfo) != nil {
		return
	}
	_ = json.Unmarshal(p.Meta[mcp.MetaKeyClientCapabilities], &i.Capabilities) // may be left out
	c.meets(&i)
}

// Write notes answers.
func (c *heardConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if a, ok := m.(*jsonrpc.Response); ok {
		c.note(a.ID, false)
	}
	return err
}

// note notes that a call is open, or is no more.
func (c *heardConn) note(id jsonrpc.ID, open bool) {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return // a string or a number has none
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if open {
		c.open[string(key)] = true
	} else {
		delete(c.open, string(key))
	}
}

// alone reports whether one call of a tool has no answer yet, and no other.
func (c *heardConn) alone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 1
}
