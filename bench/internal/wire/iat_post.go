package wire

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
)

// uplink takes requests of an agent, and its downlink.
type uplink interface {
	// post posts an envelope, and returns what is answered.
	post(body []byte) (status int, answer []byte, err error)
	// events hands on what comes down until the connection ends.
	events(data func([]byte)) error
	// At returns when what came down last had come, in Ticks; for the one who takes the events.
	At() int64
	// SetWriteDeadline bounds posts.
	SetWriteDeadline(t time.Time) error
	Close() error
}

// IATEvents is an agent with a downlink of events, that POSTs what it says.
type IATEvents struct {
	envelopes
	uplink
}

// DialIATEvents1 connects an agent to the edge at addr over HTTP/1.1: one connection down, and one up once it says
// something.
func DialIATEvents1(ctx context.Context, addr, id, token string) (*IATEvents, error) {
	h, err := dialHTTP1(ctx, addr, token, eventsPath(id))
	if err != nil {
		return nil, err
	}
	return &IATEvents{envelopes{id: id}, h}, nil
}

// DialIATEvents2 connects an agent to the edge at addr over HTTP/2: a connection of its own.
func DialIATEvents2(ctx context.Context, addr, id, token string) (*IATEvents, error) {
	c, err := dialHTTP2(ctx, addr, token)
	if err != nil {
		return nil, err
	}
	d, err := c.down(eventsPath(id))
	if err != nil {
		c.Close()
		return nil, err
	}
	return &IATEvents{envelopes{id: id}, &alone{d, c}}, nil
}

// alone is a downlink that has its connection for itself.
type alone struct {
	*downlink2
	conn *http2
}

func (a *alone) Close() error { return a.conn.Close() }

// Shared is connections over HTTP/2 that downlinks share.
type Shared struct {
	mu    sync.Mutex // guards conns
	conns map[string]*http2
}

// sharing is how many downlinks a connection has at most: an edge answers 128 requests of one at a time.
const sharing = 100

// Dial connects an agent to the edge at addr.
func (s *Shared) Dial(ctx context.Context, addr, id, token string) (*IATEvents, error) {
	c, err := s.conn(ctx, addr, token)
	if err != nil {
		return nil, err
	}
	d, err := c.down(eventsPath(id))
	if err != nil {
		return nil, err
	}
	return &IATEvents{envelopes{id: id}, d}, nil
}

// conn returns a connection with room for one more.
func (s *Shared) conn(ctx context.Context, addr, token string) (*http2, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[addr]; c != nil && c.takes(sharing) {
		return c, nil
	}
	c, err := dialHTTP2(ctx, addr, token)
	if err != nil {
		return nil, err
	}
	c.takes(sharing)
	if s.conns == nil {
		s.conns = map[string]*http2{}
	}
	s.conns[addr] = c
	return c, nil
}

// Send posts an envelope, and returns when it is answered.
func (a *IATEvents) Send(b []byte) error {
	status, answer, err := a.post(b)
	if err == nil {
		err = postedWell(status, answer)
	}
	return err
}

// Open implements loadgen.Agent. There are no spaces at this door, and that a POST is answered is its receipt.
func (a *IATEvents) Open(_ context.Context, w loadgen.Way) (loadgen.Line, error) {
	if w.Kind != loadgen.Stream {
		return nil, loadgen.ErrNone
	}
	open, chunk := a.stream(w)
	return loadgen.NewTemplate(chunk), a.Send(open)
}

// Receive implements loadgen.Agent.
func (a *IATEvents) Receive(r loadgen.Receiver) error {
	return a.events(func(b []byte) { receiveEnvelope(b, r, a.At()) })
}

// Cut implements loadgen.Agent.
func (a *IATEvents) Cut() error { return a.Close() }

// Ask posts a request to another agent, and returns when that is answered by the response.
func (a *IATEvents) Ask(to string, text []byte) error {
	asks, _ := a.request(to, text)
	status, answer, err := a.post(asks)
	if err == nil {
		err = postedWell(status, answer)
	}
	if err != nil {
		return err
	}
	return answered(answer, text)
}

// Echo posts a response to those that ask, until the connection ends.
func (a *IATEvents) Echo() error {
	asked := make(chan []byte, 64) // more than ask at a time: what comes down is read by who reads answers
	var failed error
	var echoes sync.WaitGroup
	echoes.Go(func() {
		for r := range asked {
			if err := a.Send(r); err != nil {
				failed = err
				a.Close()
			}
		}
	})
	err := a.events(func(b []byte) {
		if r := a.response(b); r != nil {
			asked <- r
		}
	})
	close(asked)
	echoes.Wait()
	if failed != nil {
		return failed
	}
	return err
}
