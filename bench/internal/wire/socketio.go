package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// SocketIO is a client's connection to a Socket.IO server, over WebSocket from the start.
type SocketIO struct {
	*Socket
	id      string
	session string // its private id, by which the server finds its session again
	last    []byte // the last event that Receive handed on
}

// DialSocketIO connects a client whom the server puts into the room of its id.
func DialSocketIO(addr, id string) (*SocketIO, error) {
	c := &SocketIO{id: id}
	return c, c.dial(addr, `40{"id":"`+id+`"}`)
}

// Resume connects the client again after its connection was lost, and goes on with its session after the last event that it received.
func (c *SocketIO) Resume(addr string) (*SocketIO, error) {
	event := bytes.TrimSuffix(c.last, []byte(`"]`)) // its offset stands last
	offset := event[bytes.LastIndexByte(event, '"')+1:]
	next := &SocketIO{id: c.id}
	return next, next.dial(addr, fmt.Sprintf(`40{"id":%q,"pid":%q,"offset":%q}`, c.id, c.session, offset))
}

func (c *SocketIO) dial(addr, connect string) (err error) {
	if c.Socket, err = Upgrade(addr, "/socket.io/?EIO=4&transport=websocket"); err != nil {
		return err
	}
	if err := c.greet(connect); err != nil {
		c.Close()
		return err
	}
	c.Ready()
	return nil
}

func (c *SocketIO) greet(connect string) error {
	if _, err := c.await("0{"); err != nil {
		return err
	}
	if _, err := c.Write(AppendText(nil, connect, nil, "")); err != nil {
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

// Stream returns what carries chunks to the room of another client: Socket.IO has no streams, so these are events like any other.
func (c *SocketIO) Stream(to string) (Line, error) { return event(`42["chunk","` + to + `","`), nil }

// Message returns what carries messages to the room of another client. The server
// acknowledges each once its adapter has been given it.
func (c *SocketIO) Message(to string) (Line, error) {
	return func(dst []byte, id uint64, text []byte) []byte {
		var b [96]byte
		head := append(strconv.AppendUint(append(b[:0], "42"...), id, 10), `["message","`...)
		head = append(append(head, to...), `","`...)
		return AppendText(dst, head, text, []byte(`"]`))
	}, nil
}

// Space joins a room and returns what carries events to its members, this one included.
func (c *SocketIO) Space(name string) (Line, error) {
	if _, err := c.Write(AppendText(nil, `420["join","`+name+`"]`, nil, "")); err != nil {
		return nil, err
	}
	if _, err := c.await("430["); err != nil {
		return nil, err
	}
	return event(`42["chunk","` + name + `","`), nil
}

func event(head string) Line {
	return func(dst []byte, _ uint64, text []byte) []byte { return AppendText(dst, head, text, `"]`) }
}

// Receive hands on what arrives until the connection ends.
func (c *SocketIO) Receive(h Handler) error {
	for {
		packet, err := c.Next()
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(packet, []byte(`42["t","`)):
			c.last = append(c.last[:0], packet...)
			receive(packet, `42["t","`, h.Text)
		case bytes.HasPrefix(packet, []byte("43")):
			h.Receipt(number(packet[2:]))
		case bytes.Equal(packet, []byte("2")): // its ping
			if _, err := c.Write(AppendText(nil, "3", nil, "")); err != nil {
				return err
			}
		case bytes.HasPrefix(packet, []byte("4")):
			h.Fault(string(packet))
		}
	}
}
