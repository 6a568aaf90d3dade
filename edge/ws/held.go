package ws

// Held returns the bytes that the edge keeps for the connection: of the frame
// that comes in, of what is queued or being written, and what its session has.
func (c *conn) Held() int64 {
	c.mu.Lock()
	held := int64(c.out)
	if c.pending != nil {
		held += int64(cap(c.pending.b))
	}
	c.mu.Unlock()
	held += c.reading.Load()
	if s := c.session.Load(); s != nil {
		held += s.Held()
	}
	return held
}
