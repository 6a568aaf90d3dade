package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/mcp/stdio"
)

// maxAsked is how many requests of the server's own are in hand at a time; further ones are dropped.
const maxAsked = 64

// errTooLarge is what a call ends with whose answer is larger than a line may be.
var errTooLarge = errors.New("the answer is too large")

// conn carries JSON-RPC over the pipes of a process, a message to a line. What the process writes besides is passed
// over: no line ends the connection, and none is kept that is longer than maxLine. It is both the transport and its
// only connection.
type conn struct {
	lines  *stdio.Lines      // Read's own, as the next
	queue  []jsonrpc.Message // of a line
	stdout io.Closer
	stdin  io.WriteCloser
	out    chan []byte
	closed chan struct{}
	noise  *throttle
	asked  atomic.Int64 // requests of the server that were not answered yet
	once   sync.Once
	writer sync.WaitGroup
}

// newConn returns a connection over the pipes of a process. Anyone who makes it owes it a Close, and then a call of
// wait.
func newConn(stdout io.ReadCloser, stdin io.WriteCloser, log *slog.Logger) *conn {
	c := &conn{
		lines: stdio.NewLines(stdout, maxLine), stdout: stdout, stdin: stdin, out: make(chan []byte), closed: make(chan struct{}),
		noise: newThrottle(log),
	}
	c.writer.Go(c.writeAll)
	return c
}

// Connect returns the connection itself.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID returns "": a process is its own session.
func (c *conn) SessionID() string { return "" }

// Read returns the next message that matters, and io.EOF once the process writes no more. It blocks until there is one;
// the end of the process unblocks it.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			return m, nil
		}
		line, tail, long, err := c.lines.Next()
		select {
		case <-c.closed:
			return nil, io.EOF
		default:
		}
		switch {
		case err != nil:
			return nil, io.EOF
		case long:
			c.noise.tell("a line is longer than " + strconv.Itoa(maxLine) + " bytes")
			if m := answerOf(line, tail); m != nil {
				return m, nil
			}
		case len(line) > 0:
			c.take(line)
		}
	}
}

// take queues the messages of a line that matter: there should be one. A byte order mark before the first is passed
// over.
func (c *conn) take(line []byte) {
	values := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))))
	for {
		var value json.RawMessage
		err := values.Decode(&value)
		if errors.Is(err, io.EOF) {
			return
		}
		var m jsonrpc.Message
		if err == nil {
			m, err = jsonrpc.DecodeMessage(keepSpelling(value))
		}
		if err != nil {
			c.noise.tell("a line is no JSON-RPC")
			return
		}
		if c.matters(m) {
			c.queue = append(c.queue, m)
		}
	}
}

// matters reports whether the session needs a message. What it does not is dropped here, as the session would queue it
// without bound.
func (c *conn) matters(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return true
	}
	if r.IsCall() {
		if c.asked.Add(1) <= maxAsked {
			return true
		}
		c.asked.Add(-1)
		c.noise.tell("it asks more than it lets be answered")
		return false
	}
	switch r.Method {
	case "notifications/progress", "notifications/tools/list_changed", "notifications/cancelled", "notifications/subscriptions/acknowledged":
		return true
	}
	return false
}

// Ids of answers, where clients find them: before a long result, or behind it. They are numbers, as our requests have
// them.
var (
	idBefore = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,`)
	idBehind = regexp.MustCompile(`,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// answerOf returns what ends the call whose answer was too long a line; nil where it does not say which that is.
func answerOf(head, tail []byte) jsonrpc.Message {
	found := idBefore.FindSubmatch(head)
	if found == nil {
		found = idBehind.FindSubmatch(tail)
	}
	if found == nil {
		return nil
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(n)
	if err != nil {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: errTooLarge}
}

// Write hands a message to the process. It blocks while that takes nothing, but no longer than ctx.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, answer := m.(*jsonrpc.Response); answer {
		defer c.asked.Add(-1)
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case c.out <- append(b, '\n'):
		return nil
	case <-c.closed:
		err = io.ErrClosedPipe
	case <-ctx.Done():
		err = ctx.Err()
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == "tools/call" {
		notHanded(ctx)
	}
	return err
}

// writeAll writes what is handed to it until the connection is closed, or the process takes nothing more.
func (c *conn) writeAll() {
	defer c.Close()
	for {
		select {
		case b := <-c.out:
			if _, err := c.stdin.Write(b); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

// Close closes both pipes, which unblocks Read and Write. It returns at once, and is idempotent.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.stdin.Close()
		c.stdout.Close()
	})
	return nil
}

// wait returns when nothing of a closed connection runs.
func (c *conn) wait() { c.writer.Wait() }
