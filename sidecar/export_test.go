package sidecar

import "time"

// ForgetBinding has the sidecar take its binding for over.
func (s *Sidecar) ForgetBinding() { s.gate.boundUntil(time.Time{}) }
