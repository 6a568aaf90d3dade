package p2p

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
)

// circuits counts those of each peer, in whichever direction, and passes on what comes on one.
type circuits struct {
	*shared

	mu sync.Mutex // guards the field below
	of map[peer.ID]int
}

// begin counts a circuit, unless one of its ends has too many.
func (c *circuits) begin(ends ...peer.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ends {
		if c.of[p] >= c.cfg.Relay.Circuits {
			return false
		}
	}
	if c.of == nil {
		c.of = map[peer.ID]int{}
	}
	for _, p := range ends {
		c.of[p]++
	}
	return true
}

// end takes it off the count.
func (c *circuits) end(ends ...peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ends {
		if c.of[p]--; c.of[p] <= 0 {
			delete(c.of, p)
		}
	}
}

// copyBuffer is how many bytes of a circuit are passed on at a time.
const copyBuffer = 32 << 10

var buffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// splice passes on what comes on either of two streams to the other, half-closes included, and returns when both are
// over. Neither takes more than the other one's reader. What goes wrong at one end, or is beyond the limits of a
// circuit, resets both.
func (c *circuits) splice(a, b network.Stream) {
	until := time.Now().Add(c.cfg.Relay.Duration)
	_ = a.SetDeadline(until) // what is over fails to be read
	_ = b.SetDeadline(until)
	var both sync.WaitGroup
	pass := func(to, from network.Stream) {
		if err := c.pass(to, from); err != nil {
			_ = to.Reset()
			_ = from.Reset()
			return
		}
		if to.CloseWrite() != nil {
			_ = from.Reset()
		}
	}
	both.Go(func() { pass(a, b) })
	pass(b, a)
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

var errCircuitLimit = errors.New("more than a circuit may carry")

// pass passes on one direction of a circuit until its end.
func (c *circuits) pass(to io.Writer, from io.Reader) error {
	buf := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buf)
	for left := c.cfg.Relay.Data; ; {
		n, err := from.Read(buf[:])
		if left -= int64(n); left < 0 {
			return errCircuitLimit
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			c.stats.Relayed.Add(int64(n))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// relayed tells what the library's relay does.
type relayed struct{ stats *Stats }

// RelayStatus implements relay.MetricsTracer.
func (relayed) RelayStatus(bool) {}

// ConnectionOpened implements relay.MetricsTracer.
func (relayed) ConnectionOpened() {}

// ConnectionClosed implements relay.MetricsTracer.
func (relayed) ConnectionClosed(time.Duration) {}

// ConnectionRequestHandled implements relay.MetricsTracer.
func (r relayed) ConnectionRequestHandled(status pbv2.Status) { r.stats.hop(status) }

// ReservationAllowed implements relay.MetricsTracer.
func (relayed) ReservationAllowed(bool) {}

// ReservationClosed implements relay.MetricsTracer.
func (relayed) ReservationClosed(int) {}

// ReservationRequestHandled implements relay.MetricsTracer.
func (r relayed) ReservationRequestHandled(status pbv2.Status) { r.stats.hop(status) }

// BytesTransferred implements relay.MetricsTracer.
func (r relayed) BytesTransferred(n int) { r.stats.Relayed.Add(int64(n)) }
