//go:build chaos

package overload

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/agora-relay/agora/internal/loadgen"
)

// agent is one of thousands beside what they test. It answers pings while it reads.
type agent struct {
	*loadgen.Conn
	id     string
	socket net.Conn
}

// join connects an agent and waits until it is registered. t names the session that it continues with, if any.
func join(at, id string, t loadgen.Target) (*agent, error) {
	t.Edge, t.Agent, t.Buffer = at, id, 1024
	c, err := loadgen.Dial(context.Background(), t)
	if err != nil {
		return nil, err
	}
	return &agent{c, id, c.NetConn()}, nil
}

// narrow makes the agent's system take little before the agent itself reads, and widen as much as usual.
func (a *agent) narrow() { a.socket.(*net.TCPConn).SetReadBuffer(32 << 10) }
func (a *agent) widen()  { a.socket.(*net.TCPConn).SetReadBuffer(1 << 20) }

// say sends a text frame.
func (a *agent) say(format string, args ...any) error {
	return a.Write(loadgen.AppendBytes(nil, fmt.Appendf(nil, format, args...)))
}

// field returns the value of a number or string in a frame, as it stands; empty when it is not there.
func field(f []byte, key string) string {
	_, rest, ok := bytes.Cut(f, []byte(`"`+key+`":`))
	if !ok {
		return ""
	}
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, `"`))
}

func number(f []byte, key string) uint64 {
	n, _ := strconv.ParseUint(field(f, key), 10, 64) // what is not there is 0
	return n
}
