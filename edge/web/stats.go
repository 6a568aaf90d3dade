package web

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Stats counts what a kit does. All fields may be read at any time.
type Stats struct {
	Open     atomic.Int64 // requests that are being answered
	Lasting  atomic.Int64 // of them those whose answer lasts
	Admitted atomic.Int64 // let in so far
	Refused  atomic.Int64 // answered with an error, let in or not
	BytesIn  atomic.Int64 // of bodies
	BytesOut atomic.Int64 // of answers' bodies
	Stalled  atomic.Int64 // answers given up because the peer took nothing
	Errors   Errors       // told
}

func newStats() *Stats { return &Stats{Errors: NewErrors()} }

func (s *Stats) fault(c agora.Code) {
	s.Refused.Add(1)
	s.Errors.Count(c)
}

// Errors counts errors by code. The map never changes.
type Errors map[agora.Code]*atomic.Int64

// NewErrors returns counters of all codes.
func NewErrors() Errors {
	e := Errors{}
	for _, c := range agora.Codes() {
		e[c] = new(atomic.Int64)
	}
	return e
}

// Count counts an error.
func (e Errors) Count(c agora.Code) {
	if n := e[c]; n != nil {
		n.Add(1)
	}
}
