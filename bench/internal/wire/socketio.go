package wire

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// SocketIO is a client's connection to a Socket.IO server, over WebSocket from the start.
type SocketIO struct {
	*socket.Conn
	id      string
	session string // its private id, by which the server finds its session again
	last    []byte // the last event that Receive handed on

	mu    sync.Mutex // guards the fields below
	asked uint64     // how often it has asked for an acknowledgement
	owed  map[uint64]loadgen.Stamp
}

// DialSocketIO connects a client whom the server puts into the room of its id.
func DialSocketIO(ctx context.Context, addr, id string) (*SocketIO, error) {
	return dialSocketIO(ctx, addr, id, `40{"id":"`+id+`"}`)
}

// Resume connects the client again after its connection was lost, and continues with its session after the last event
// that it received.
func (c *SocketIO) Resume(ctx context.Context, addr string) (*SocketIO, error) {
	event := bytes.TrimSuffix(c.last, []byte(`"]`)) // its offset stands last
	offset := event[bytes.LastIndexByte(event, '"')+1:]
	return dialSocketIO(ctx, addr, c.id, fmt.Sprintf(`40{"id":%q,"pid":%q,"offset":%q}`, c.id, c.session, offset))
}

func dialSocketIO(ctx context.Context, addr, id, hi string) (*SocketIO, error) {
	s, err := upgrade(ctx, addr, "/socket.io/?EIO=4&transport=websocket", "")
	if err != nil {
		return nil, err
	}
	c := &SocketIO{Conn: s, id: id, owed: map[uint64]loadgen.Stamp{}}
	return c, greeted(s, func() error { return c.greet(hi) })
}

func (c *SocketIO) greet(hi string) error {
	if _, err := c.await("0{"); err != nil {
		return err
	}
	if err := c.Send(socket.AppendText(nil, hi)); err != nil {
		return err
	}
	packet, err := c.await("40{")
	if session, ok := cut(packet, `"pid":"`); ok {
		c.session = string(session)
	}
	return err
}

// await reads until a packet that begins so.
func (c *SocketIO) await(head string) ([]byte, error) {
	for {
		packet, err := c.Next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("await %s: %w", head, err)
		case bytes.HasPrefix(packet, []byte(head)):
			return packet, nil
		case bytes.HasPrefix(packet, []byte("44")):
			return nil, fmt.Errorf("the server says %s", packet)
		}
	}
}

// Open implements loadgen.Agent. Socket.IO has no streams: chunks are events to the room of another client like any
// other. The server acknowledges a message once its adapter has been given it.
func (c *SocketIO) Open(_ context.Context, w loadgen.Way) (loadgen.Line, error) {
	switch w.Kind {
	case loadgen.OneShot:
		return &acknowledged{client: c, text: loadgen.NewTemplate([]byte(`["message","` + w.To + `","` + string(w.Text) + `"]`))}, nil
	case loadgen.FanOut:
		if err := c.Send(socket.AppendText(nil, `420["join","`+w.To+`"]`)); err != nil {
			return nil, err
		}
		if _, err := c.await("430["); err != nil {
			return nil, err
		}
	}
	return loadgen.NewTemplate(socket.AppendText(nil, `42["chunk","`+w.To+`","`, string(w.Text), `"]`)), nil
}

// acknowledged is a line whose messages have numbers, as the server tells what it acknowledges by those.
type acknowledged struct {
	client *SocketIO
	text   *loadgen.Template
	frame  []byte
}

// Frame implements loadgen.Line.
func (l *acknowledged) Frame(s loadgen.Stamp) []byte {
	c := l.client
	c.mu.Lock()
	c.asked++
	id := c.asked
	c.owed[id] = s
	c.mu.Unlock()
	var b [24]byte
	l.frame = socket.AppendText(l.frame[:0], strconv.AppendUint(append(b[:0], "42"...), id, 10), l.text.Frame(s))
	return l.frame
}

// receipted hands on what a server has acknowledged.
func (c *SocketIO) receipted(id uint64, r loadgen.Receiver) {
	c.mu.Lock()
	s, ok := c.owed[id]
	delete(c.owed, id)
	c.mu.Unlock()
	if ok {
		r.Receipted(s, c.At())
	}
}

// Receive implements loadgen.Agent.
func (c *SocketIO) Receive(r loadgen.Receiver) error {
	for {
		packet, err := c.Next()
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(packet, []byte(`42["t","`)):
			c.last = append(c.last[:0], packet...)
			arrived(r, packet, c.At())
		case bytes.HasPrefix(packet, []byte("43")):
			c.receipted(number(packet[2:]), r)
		case bytes.Equal(packet, []byte("2")): // its ping
			if err := c.Send(socket.AppendText(nil, "3")); err != nil {
				return err
			}
		case bytes.HasPrefix(packet, []byte("4")):
			fault(r, packet)
		}
	}
}
