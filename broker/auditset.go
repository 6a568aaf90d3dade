package broker

import "sync/atomic"

// auditSet is what audits are asked for, as a set of bits.
type auditSet struct{ bits atomic.Uint32 }

func (s *auditSet) or(what uint32) { s.bits.Or(what) }

func (s *auditSet) take() uint32 { return s.bits.Swap(0) }
