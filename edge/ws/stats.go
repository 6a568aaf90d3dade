package ws

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/latency"
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Connections atomic.Int64 // open now
	Accepted    atomic.Int64 // upgraded so far
	Refused     atomic.Int64 // refused before the upgrade
	FramesIn    atomic.Int64
	BytesIn     atomic.Int64
	FramesOut   atomic.Int64
	BytesOut    atomic.Int64
	Writes      atomic.Int64                 // system calls that wrote BytesOut
	Stalled     atomic.Int64                 // sockets closed because they took nothing
	Silent      atomic.Int64                 // connections without an agent closed because nothing came of them
	ToLog       latency.Histogram            // from a frame that was read to its verb having handed it to the log; of every 16th frame
	Errors      map[agora.Code]*atomic.Int64 // error frames by code; the map never changes
}

func newStats() *Stats {
	s := &Stats{Errors: map[agora.Code]*atomic.Int64{}}
	for _, c := range agora.Codes() {
		s.Errors[c] = new(atomic.Int64)
	}
	return s
}

func (s *Stats) fault(c agora.Code) {
	if n := s.Errors[c]; n != nil {
		n.Add(1)
	}
}
