package agoratest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// lineDialect is that of a [LineNode].
const lineDialect = "line"

// LineDoor is an edge's door for agents like [LineNode], which it dials.
type LineDoor struct {
	node *edge.Node
	work sync.WaitGroup
	stop context.CancelFunc
	ctx  context.Context

	mu      sync.Mutex // guards the fields below
	adopted int        // sessions that this edge continues with
	heard   map[agora.AgentID]int
	between func() // is called after dialling and before the session is claimed; may be nil
}

// NewLineDoor gives an edge a door of this kind, which dials by the edge's own dialer. The caller owes it a call of
// Stop, and of Wait once the edge is closed.
func NewLineDoor(n *edge.Node) *LineDoor {
	d := &LineDoor{node: n, heard: map[agora.AgentID]int{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	n.Adopts(lineDialect, d)
	return d
}

// Register dials an agent and opens a session for it, as a door does that hears of one. Where it can't be dialled or
// opened, nothing of it is left.
func (d *LineDoor) Register(ctx context.Context, a *edge.Actor, id agora.AgentID, address string) error {
	return d.connect(ctx, address, id, func(h edge.Hello, c edge.Conn) (*edge.Session, error) {
		h.Card, h.Dialled = agora.Agent{ID: id, Name: "Node " + string(id), Dialect: lineDialect}, address
		s, _, err := a.Open(ctx, h, c)
		return s, err
	}, func() {})
}

// Adopt implements [edge.Adopter].
func (d *LineDoor) Adopt(ctx context.Context, o *edge.Orphan) error {
	return d.connect(ctx, o.Address, o.Card.ID, func(h edge.Hello, c edge.Conn) (*edge.Session, error) {
		d.mu.Lock()
		between := d.between
		d.mu.Unlock()
		if between != nil {
			between()
		}
		s, _, err := o.Open(ctx, h, c)
		if err == nil {
			d.mu.Lock()
			d.adopted++
			d.mu.Unlock()
		}
		return s, err
	}, func() { o.Admission().Release() })
}

// Between has the door call something each time after it has dialled to adopt a session, and before it claims that.
func (d *LineDoor) Between(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.between = f
}

// Adopted returns how many sessions the edge has adopted.
func (d *LineDoor) Adopted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopted
}

// Heard returns how often a connection of this door's was told that its agent lives, in another way than by what it
// says: see [edge.Hearer].
func (d *LineDoor) Heard(id agora.AgentID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heard[id]
}

func (d *LineDoor) connect(ctx context.Context, address string, id agora.AgentID, open func(edge.Hello, edge.Conn) (*edge.Session, error), over func()) error {
	conn, err := d.node.Config().Dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	c := &lineConn{Conn: conn, door: d, agent: id, moved: make(chan struct{}, 1)}
	s, err := open(edge.Hello{Conn: "line-" + conn.LocalAddr().String()}, c)
	if err != nil {
		conn.Close()
		return err
	}
	c.session = s
	c.say("hello " + string(s.Agent()))
	s.Begin()
	d.work.Go(func() {
		defer over()
		var writer sync.WaitGroup
		ctx, cancel := context.WithCancel(d.ctx)
		writer.Go(func() { c.write(ctx) })
		bye := c.read(ctx)
		cancel()
		conn.Close()
		writer.Wait()
		s.Closed(bye)
	})
	return nil
}

// Stop ends its connections. It does not block.
func (d *LineDoor) Stop() { d.stop() }

// Wait waits until its connections have ended.
func (d *LineDoor) Wait() { d.work.Wait() }

// lineConn is a connection to a LineNode. It is its session's Conn.
type lineConn struct {
	net.Conn
	door    *LineDoor
	agent   agora.AgentID
	session *edge.Session // once it is open
	moved   chan struct{} // something is to be written

	mu    sync.Mutex // guards the field below
	lines []string   // to be written before deliveries
}

func (c *lineConn) Wake() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

func (c *lineConn) Notify(n edge.Notice) {
	if n.Kind == edge.NoticePing {
		c.say(fmt.Sprint("ping ", n.Data))
	}
}

func (c *lineConn) Close(edge.Reason) { c.Conn.Close() }

// Alive implements [edge.Hearer].
func (c *lineConn) Alive() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.door.heard[c.agent]++
}

func (c *lineConn) say(line string) {
	c.mu.Lock()
	c.lines = append(c.lines, line)
	c.mu.Unlock()
	c.Wake()
}

// write writes what there is, until the connection is gone.
func (c *lineConn) write(ctx context.Context) {
	defer c.Conn.Close()
	for ctx.Err() == nil {
		select {
		case <-c.moved:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		out := c.lines
		c.lines = nil
		c.mu.Unlock()
		ds, err := c.session.Pull(ctx, 64<<10, func() {})
		if err != nil {
			time.AfterFunc(20*time.Millisecond, c.Wake)
		}
		for _, d := range ds {
			out = append(out, lineOf(&d))
		}
		c.session.Queued()
		if len(out) > 0 {
			if _, err := fmt.Fprintln(c.Conn, strings.Join(out, "\n")); err != nil {
				return
			}
		}
		c.session.Written()
		if len(ds) > 0 {
			c.Wake()
		}
	}
}

// lineOf is a delivery as a line.
func lineOf(d *edge.Delivery) string {
	word := "message"
	if d.Event != nil {
		return fmt.Sprintf("event %d %s %s", d.Event.Seq, d.Event.From, d.Event.Body)
	}
	if d.Redelivered {
		word = "again"
	}
	return fmt.Sprintf("%s %d %s %s", word, d.Message.Seq, d.Message.From, d.Message.Body)
}

// read handles what the node says, and reports whether it has said goodbye.
func (c *lineConn) read(ctx context.Context) (bye bool) {
	for lines := bufio.NewScanner(c.Conn); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "pong":
			data, _ := strconv.ParseUint(rest, 10, 64)
			c.session.Pong(data)
		case "send":
			to, body, _ := strings.Cut(rest, " ")
			m := agora.Message{To: agora.Address{Agent: agora.AgentID(to)}, Body: json.RawMessage(body)}
			if err := c.session.Do(ctx, &edge.Command{Verb: edge.Send, Message: m}); err != nil {
				return false
			}
		case "bye":
			return true
		}
	}
	return false
}
