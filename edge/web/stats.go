package web

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Stats counts what a kit does. All fields may be read at any time.
type Stats struct {
	Open     atomic.Int64                 // requests that are being answered
	Lasting  atomic.Int64                 // of them those whose answer lasts
	Admitted atomic.Int64                 // let in so far
	Refused  atomic.Int64                 // answered with an error, let in or not
	BytesIn  atomic.Int64                 // of bodies
	BytesOut atomic.Int64                 // of answers' bodies
	Stalled  atomic.Int64                 // answers given up because the peer took nothing
	Errors   map[agora.Code]*atomic.Int64 // errors told, by code; the map never changes
}

func newStats() *Stats {
	s := &Stats{Errors: map[agora.Code]*atomic.Int64{}}
	for _, c := range agora.Codes() {
		s.Errors[c] = new(atomic.Int64)
	}
	return s
}

func (s *Stats) fault(c agora.Code) {
	s.Refused.Add(1)
	if n := s.Errors[c]; n != nil {
		n.Add(1)
	}
}
