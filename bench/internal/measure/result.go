// Package measure puts a system under load and measures what it carries and what that costs. Every system gets the
// same, from the engine of agora bench: texts of one size, one write each, and so many under way, told by what
// receivers got, so that nobody gains by dropping. Every text is numbered and accounted for. Loads in which somebody
// waits for an answer, and those of AIP, have loops of their own here.
package measure

import (
	"context"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
)

// Target is a running system.
type Target interface {
	loadgen.System
	loadgen.Watched
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
	Patience   time.Duration // what has not come so long after the end is lost
}

// MinSize is the length of the shortest text.
const MinSize = loadgen.StampSize

// us returns microseconds for each of so many.
func us(d time.Duration, n float64) float64 {
	if n == 0 {
		return 0
	}
	return float64(d) / float64(time.Microsecond) / n
}

// pause waits, and fails when ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Quiet waits until servers have dealt with what they were sent, and use less than a tenth of a processor; ten seconds
// at most.
func Quiet(ctx context.Context, t Target) error {
	const look = 200 * time.Millisecond
	used := t.Usage().CPU
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err := pause(ctx, look); err != nil {
			return err
		}
		now := t.Usage().CPU
		if now-used < look/10 {
			return nil
		}
		used = now
	}
	return nil
}
