package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// flow is a stream from one agent to another at another server.
type flow struct {
	index int
	line  wire.Line
	owner *sender
	open  atomic.Bool  // something has come through
	sent  atomic.Int64 // texts so far

	next, lost int64 // the receiver's own: the number that comes next, and how many were left out
	owed       int64 // the receiver's own: came since the last credit
}

// sender is an agent with the flows that it writes.
type sender struct {
	*member
	ready chan *flow // a quantum of texts may be written
	text  []byte     // its goroutine's own, like the next two
	frame []byte
	id    uint64
}

// stream is a load of flows.
type stream struct {
	*crew
	senders   []*sender
	receivers []*member // one for each flow
	flows     []*flow
	open      atomic.Int64 // flows that something has come through
	quantum   int64        // texts a credit stands for
}

// Shape says who streams to whom: each receiver gets one stream, and the senders share those among them.
type Shape struct {
	Senders, Receivers int
	Idle               int // agents that are connected besides, and say nothing
}

// openStreams connects senders and receivers, opens every flow and returns when
// each has carried something. Sender and receiver of a flow are at different servers.
func openStreams(ctx context.Context, t Target, name string, shape Shape, cfg Config) (*stream, error) {
	s := &stream{crew: &crew{target: t, name: name, cfg: cfg}, quantum: int64(max(1, cfg.Window/8))}
	err := s.connect(shape)
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		s.close()
		if s.fault != "" {
			err = fmt.Errorf("%w; %d faults, the first: %s", err, s.faults, s.fault)
		}
		return nil, err
	}
	return s, nil
}

func (s *stream) connect(shape Shape) (err error) {
	idle, err := s.newMembers(shape.Idle, Idles, func(i int) int { return i })
	if err != nil {
		return err
	}
	if s.receivers, err = s.newMembers(shape.Receivers, Receives, func(i int) int { return i + 1 }); err != nil {
		return err
	}
	senders, err := s.newMembers(shape.Senders, Sends, func(i int) int { return i })
	if err != nil {
		return err
	}
	quanta := int(max(1, int64(s.cfg.Window)/s.quantum))
	for _, m := range senders {
		// There is room for every credit, so that no receiver ever waits for a sender.
		ready := make(chan *flow, quanta*(shape.Receivers/shape.Senders+1))
		s.senders = append(s.senders, &sender{member: m, ready: ready, text: newText(s.cfg.Size)})
	}
	s.flows = make([]*flow, shape.Receivers)
	for i := range s.flows {
		s.flows[i] = &flow{index: i, owner: s.senders[i%len(senders)]}
	}
	for _, m := range s.receivers {
		s.listen(m, wire.Handler{Text: func(text []byte) { s.arrived(m, text) }})
	}
	for _, m := range append(idle, senders...) {
		s.listen(m, wire.Handler{})
	}
	for i, f := range s.flows {
		if f.line, err = f.owner.Stream(s.receivers[i].id); err != nil {
			return err
		}
	}
	return nil
}

// begin returns when something has come through every flow: so nothing is lost to subscriptions on their way.
func (s *stream) begin(ctx context.Context) error {
	return reach(ctx, len(s.flows), func() int { return int(s.open.Load()) }, func() error {
		for _, f := range s.flows {
			if f.open.Load() {
				continue
			}
			if err := f.owner.write(f, hello, time.Now().UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
}

// write sends one text.
func (s *sender) write(f *flow, n, due int64) error {
	s.id++
	stamp(s.text, f.index, n, due)
	s.frame = f.line(s.frame[:0], s.id, s.text)
	_, err := s.Write(s.frame)
	return err
}

// arrived takes what came to a receiver.
func (s *stream) arrived(m *member, text []byte) {
	i, n, due, ok := read(text)
	if !ok || i >= len(s.flows) {
		s.refused(fmt.Sprintf("%s got %.60q", m.id, text))
		return
	}
	f := s.flows[i]
	switch {
	case n == hello:
		if !f.open.Swap(true) {
			s.open.Add(1)
		}
		return
	case n < f.next:
		m.disordered++
		return
	}
	f.lost += n - f.next
	f.owed += n + 1 - f.next
	f.next = n + 1
	m.got.Add(1)
	s.timed(m, due)
	for f.owed >= s.quantum {
		f.owed -= s.quantum
		select {
		case f.owner.ready <- f:
		default: // a paced sender takes no credits
		}
	}
}

// sent returns how many texts were written.
func (s *stream) sent() (n int64) {
	for _, f := range s.flows {
		n += f.sent.Load()
	}
	return n
}

// end waits for what is under way, closes everything and completes the result. The writers have been told to stop.
func (s *stream) end(ctx context.Context, r *Result) error {
	err := s.drained(ctx, s.sent)
	s.finish(r)
	r.Sent = s.sent()
	for _, f := range s.flows {
		r.Lost += f.lost + f.sent.Load() - f.next
	}
	return err
}
