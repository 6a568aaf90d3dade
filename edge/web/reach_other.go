//go:build !linux

package web

// Written returns false: this system does not say.
func (r Reach) Written() (bytes uint64, ok bool) { return 0, false }

// Acked returns false: this system does not say.
func (r Reach) Acked() (bytes uint64, ok bool) { return 0, false }
