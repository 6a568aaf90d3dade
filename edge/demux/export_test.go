package demux

// Unconsumed returns how many exchanges hold the position back.
func (d *Demux) Unconsumed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.position.unread)
}
