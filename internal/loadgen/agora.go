package loadgen

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Agora is the edges of a cluster, as a [System].
type Agora struct {
	Edges  []string // WebSocket addresses
	Access          // of every agent
	Acks
}

// Acks says when agents acknowledge what they get. The zero value is never: their pongs tell how far they are.
type Acks struct {
	Batch int           // after so many messages
	After time.Duration // and after the first that comes so long after the last acknowledgement; 0: not for that
}

// AcksOfClients are those of the Go client.
var AcksOfClients = Acks{Batch: 64, After: time.Second}

// Servers implements System.
func (s Agora) Servers() int { return len(s.Edges) }

// Dial implements System. An agent that idles reads into a small buffer, as it hears next to nothing, and where edges
// are on this machine each ten thousand of them have a local address of their own.
func (s Agora) Dial(ctx context.Context, r Role, id string, server int) (Agent, error) {
	p, err := s.Peer(ctx, r, id, server)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Resume implements System.
func (s Agora) Resume(ctx context.Context, a Agent, server int) (Agent, error) {
	p, err := a.(*Peer).Resume(ctx, s.edge(server))
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s Agora) edge(server int) string { return s.Edges[server%len(s.Edges)] }

// Peer is Dial, with the agent's own type.
func (s Agora) Peer(ctx context.Context, r Role, id string, server int) (*Peer, error) {
	t := Target{Edge: s.edge(server), Agent: id, Access: s.Access}
	if r == Idles {
		t.Buffer, t.Source = smallBuffer, source(t.Edge, id)
	}
	c, err := Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Peer{Conn: c, access: s.Access, acks: s.Acks, returns: r == Returns}, nil
}

const (
	smallBuffer = 512
	perSource   = 10000
)

// source returns the local address of an agent by the number that its id ends with: one more for each ten thousand,
// where the edge is on this machine and it has them.
func source(edge, id string) net.IP {
	u, err := url.Parse(edge)
	if err != nil || runtime.GOOS != "linux" {
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() || ip.To4() == nil {
		return nil
	}
	k, err := strconv.Atoi(id[len(strings.TrimRight(id, "0123456789")):])
	if err != nil || k < perSource {
		return nil
	}
	return net.IPv4(127, 0, 1, byte(k/perSource))
}

// streamID names the stream of a line.
func streamID(line int) string { return fmt.Sprintf("s%d", line) }
