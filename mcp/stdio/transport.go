package stdio

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is how many bytes a line has at most, where a Transport says nothing else.
const maxLine = 16 << 20

// lookAtOut is how often a connection whose input has ended looks whether anybody still reads its answers.
const lookAtOut = 200 * time.Millisecond

// Transport is MCP over a reader and a writer, for a server. A line that is no message is answered with a JSON-RPC
// error whose id is null, and the next line is read. A call that its host has cancelled is not answered. Every other
// call that was read before the reader's end is answered before the connection ends.
type Transport struct {
	In      io.ReadCloser // Close of the connection closes it
	Out     io.Writer     // stays open
	MaxLine int           // bytes of a line; 16 MiB if zero
}

// Connect begins to read. It never fails.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{in: t.In, out: t.Out, most: cmp.Or(t.MaxLine, maxLine), lines: make(chan line), closed: make(chan struct{}), calls: calls{changed: make(chan struct{})}}
	go c.read() // nobody can wait for it: a read of stdin ends when the host says something, or ends
	return c, nil
}

// line is a line of the input; long where it had more bytes than it may, and text is not all of it.
type line struct {
	text []byte
	long bool
}

// conn is the connection of a Transport.
type conn struct {
	in     io.ReadCloser
	most   int
	lines  chan line // closed behind the last one
	closed chan struct{}
	once   sync.Once
	queue  []jsonrpc.Message // of a batch; Read's own

	calls calls

	writing sync.Mutex // held while a line is written
	out     io.Writer
}

// SessionID returns "": a process is its own session.
func (c *conn) SessionID() string { return "" }

// Close unblocks Read, and closes the input. It is idempotent.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		close(c.closed)
		err = c.in.Close()
	})
	return err
}

// read hands the lines of the input to Read, until its end or that of the connection.
func (c *conn) read() {
	defer close(c.lines)
	for in := NewLines(c.in, c.most); ; {
		text, _, long, err := in.Next()
		if text = bytes.Trim(text, " \t\r\n"); len(text) > 0 {
			select {
			case c.lines <- line{bytes.Clone(text), long}:
			case <-c.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read returns the next message. At the end of the input it waits until what was read is answered, and returns io.EOF
// then, or when the connection was closed, or nobody reads the answers.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			return m, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l, ok := <-c.lines:
			if !ok {
				c.finish(ctx)
				return nil, io.EOF
			}
			if err := c.take(l); err != nil {
				return nil, err
			}
		}
	}
}

// finish waits until all calls are answered, the connection is closed, or nobody reads the answers.
func (c *conn) finish(ctx context.Context) {
	look := time.NewTicker(lookAtOut)
	defer look.Stop()
	for {
		open, changed := c.calls.unanswered()
		if open == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-c.closed:
			return
		case <-look.C:
			if gone(c.out) {
				return
			}
		}
	}
}

// take queues the messages of a line, and answers those that are none. Its error is that of the output.
func (c *conn) take(l line) error {
	if l.long {
		return c.send(refusal(jsonrpc.CodeInvalidRequest, "a message is longer than %d bytes", c.most))
	}
	if fault := unreadable(l.text); fault != "" {
		return c.send(refusal(jsonrpc.CodeParseError, "%s", fault))
	}
	if l.text[0] == '[' {
		return c.takeBatch(l.text)
	}
	m, refused := c.message(l.text, nil)
	if refused != nil {
		return c.send(refused)
	}
	c.queue = append(c.queue, m)
	return nil
}

// message returns a message, or what it is answered where it is none. A call is open from then on.
func (c *conn) message(text []byte, b *batch) (m jsonrpc.Message, refused []byte) {
	m, id, fault := parse(text)
	r, _ := m.(*jsonrpc.Request)
	switch {
	case fault != "":
	case r != nil && r.IsCall():
		if !c.calls.begin(r, id, b) {
			fault = "the id is that of another call, which is not answered yet"
		}
	case r != nil && r.Method == "notifications/cancelled":
		c.calls.cancel(r)
	}
	if fault != "" {
		return nil, refusal(jsonrpc.CodeInvalidRequest, "%s", fault)
	}
	return m, nil
}

// Write writes a message in a line, unless it is the answer to a call that was cancelled.
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.send(text)
	}
	k, there := c.calls.end(r.ID)
	if !there {
		return nil // an answer to no call
	}
	defer c.calls.answered(k)
	return c.answer(k, respelled(text, k.id))
}

// answer writes the answer to a call, or keeps it for the answer to its batch.
func (c *conn) answer(k *call, text []byte) error {
	if k.cancelled {
		text = nil
	}
	if k.batch != nil {
		text = c.calls.collect(k.batch, text)
	}
	if text == nil {
		return nil
	}
	return c.send(text)
}

// send writes a line.
func (c *conn) send(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}
