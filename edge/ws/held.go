package ws

import "github.com/agora-relay/agora/edge"

// Held returns the bytes that the edge keeps for the connection: of the frame
// that comes in, of what is queued or being written, and what its session has;
// and whether a verb or a writer is at work, or will be soon.
func (c *conn) Held() (held int64, working bool) {
	c.mu.Lock()
	held, working = int64(c.out.taken), c.out.writing || c.busy || c.out.waiting
	if c.out.pending != nil {
		held += int64(cap(c.out.pending.B))
	}
	c.mu.Unlock()
	held += c.in.held.Load()
	if s := c.session.Load(); s != nil {
		held += s.Held()
	}
	return held, working
}

// Shed closes the connection, as the edge holds more than it can.
func (c *conn) Shed() { c.Close(edge.Overloaded) }
