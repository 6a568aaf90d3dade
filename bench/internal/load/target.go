// Package load puts a system under load and measures what it carries and what
// that costs. Every system gets the same: texts of one size, one write each, and
// so many under way per sender, told by what the receiver got, so that nobody
// gains by dropping. Every text is numbered and accounted for.
package load

import (
	"io"
	"syscall"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// Agent is a connection to a system under test. Write may be called by many
// goroutines, whose writes do not mix; everything else by one. Close says goodbye
// where there is such a thing, and unblocks all of it.
type Agent interface {
	io.WriteCloser
	// Stream makes ready to send chunks to another agent.
	Stream(to string) (wire.Line, error)
	// Message makes ready to send receipted messages; wire.ErrNone where there are no receipts.
	Message(to string) (wire.Line, error)
	// Space makes the agent a member of a space and ready to publish there. It is called before Receive.
	Space(name string) (wire.Line, error)
	// Receive hands on what arrives, and returns when the connection has ended.
	Receive(h wire.Handler) error
}

// Asker is an agent of a system that has requests and responses.
type Asker interface {
	Agent
	// Ask asks another agent, and returns when its response has come, which has the same text. Receive is not called meanwhile.
	Ask(to string, text []byte) error
	// Echo answers those that ask until the connection has ended, in place of Receive.
	Echo() error
}

// Role is what an agent does in a load: some systems have several ways to connect. It is part of the agent's id.
type Role string

// The roles.
const (
	Sends    Role = "s"
	Receives Role = "r"
	Member   Role = "m" // of a space
	Idles    Role = "i"
)

// Target is a running system.
type Target interface {
	// Dial connects an agent with a role to one of its servers, counted from 0 and beyond their number round again.
	Dial(r Role, id string, server int) (Agent, error)
	// Resume connects an agent again whose connection was lost and whose Receive has returned, and goes on
	// after what that handed on last; wire.ErrNone where nobody can.
	Resume(a Agent, server int) (Agent, error)
	// Usage tells what its servers have used up to now.
	Usage() Usage
}

// Usage is what servers, of whatever kind, have used together.
type Usage struct {
	CPU   time.Duration // user and system
	Edges time.Duration // that of those among them that agents connect to
	RSS   int64         // bytes, now
	Held  int64         // of those among them that agents connect to: bytes that are theirs alone, pages of files left out
}

// Result is what one load was like. What a load does not have is zero.
type Result struct {
	Rate       float64 `json:"rate,omitempty"`        // arrived (or receipted, or resumed) per second
	ServerCPU  float64 `json:"server_us,omitempty"`   // µs of all servers per arrival
	EdgeCPU    float64 `json:"edge_us,omitempty"`     // µs of those among them that agents connect to
	ClientCPU  float64 `json:"client_us,omitempty"`   // µs of the load itself per arrival
	P50        float64 `json:"p50_us,omitempty"`      // µs
	P99        float64 `json:"p99_us,omitempty"`      // µs
	Memory     float64 `json:"agent_bytes,omitempty"` // bytes of all servers per connection
	EdgeMemory float64 `json:"edge_bytes,omitempty"`  // bytes of the server that it is connected to, pages of files left out
	RSS        float64 `json:"rss_bytes,omitempty"`   // of all servers, under this load
	Sent       int64   `json:"sent,omitempty"`
	Lost       int64   `json:"lost,omitempty"`       // left out, or never come
	Disordered int64   `json:"disordered,omitempty"` // come again, or behind a later one
	Faults     int64   `json:"faults,omitempty"`     // told by a server
	Fault      string  `json:"fault,omitempty"`      // the first of them
}

// Config says how large a load is.
type Config struct {
	Warm, Time time.Duration // before measuring, and of it
	Size       int           // bytes of a text; at least MinSize
	Window     int           // texts under way per stream, or events per space
	Patience   time.Duration // what has not come when nothing came for so long is lost
}

// clientCPU returns what this process has used.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
