package p2p

import (
	"sync/atomic"

	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"

	"github.com/agora-relay/agora/internal/latency"
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Connections  atomic.Int64 // of peers
	Strangers    atomic.Int64 // those of them whose peers are nobody here
	Refused      atomic.Int64 // connections that were closed because of a limit when their peer had proven who it is
	Held         atomic.Int64 // bytes that are kept of what peers have sent: not read yet, or of requests that are not over
	Reservations atomic.Int64 // of places at this edge
	Here         atomic.Int64 // circuits to peers that have reserved a place here
	Across       atomic.Int64 // circuits to peers that have reserved a place at another edge
	Derived      atomic.Int64 // circuits to agents of other dialects
	Relayed      atomic.Int64 // bytes of circuits to peers, in both directions
	Handoffs     latency.Histogram

	hops     [len(hopStatuses)]atomic.Int64
	handoffs [600]atomic.Int64
}

// hopStatuses are those that HOP messages are answered with.
var hopStatuses = [...]pbv2.Status{
	pbv2.Status_OK, pbv2.Status_RESERVATION_REFUSED, pbv2.Status_RESOURCE_LIMIT_EXCEEDED, pbv2.Status_PERMISSION_DENIED,
	pbv2.Status_CONNECTION_FAILED, pbv2.Status_NO_RESERVATION, pbv2.Status_MALFORMED_MESSAGE, pbv2.Status_UNEXPECTED_MESSAGE,
}

func (s *Stats) hop(status pbv2.Status) {
	for i, known := range hopStatuses {
		if known == status {
			s.hops[i].Add(1)
		}
	}
}

// Hops calls f with how many HOP messages were answered with each status, by its name.
func (s *Stats) Hops(f func(status string, n int64)) {
	for i, known := range hopStatuses {
		f(known.String(), s.hops[i].Load())
	}
}

func (s *Stats) handoff(code int) {
	if 0 < code && code < len(s.handoffs) {
		s.handoffs[code].Add(1)
	}
}

// HandedOff calls f with how many handoffs have ended with each code that there was: 200, or that of a failure.
func (s *Stats) HandedOff(f func(code int, n int64)) {
	for code := range s.handoffs {
		if n := s.handoffs[code].Load(); n > 0 || code == 200 {
			f(code, n)
		}
	}
}
