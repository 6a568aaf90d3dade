package loadgen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// hub is a system without servers: what is sent to one of its agents arrives, as often as spoil says.
type hub struct {
	spoil func(s Stamp) int // how often a message arrives; once if nil

	mu     sync.Mutex // guards the fields below
	agents map[string]*spoke
	spaces map[string][]*spoke
}

func newHub() *hub { return &hub{agents: map[string]*spoke{}, spaces: map[string][]*spoke{}} }

func (h *hub) Servers() int { return 2 }

func (h *hub) Dial(_ context.Context, _ Role, id string, _ int) (Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &spoke{hub: h, in: make(chan Stamp, 1<<16), gone: make(chan struct{})}
	h.agents[id] = s
	return s, nil
}

func (h *hub) Resume(context.Context, Agent, int) (Agent, error) { return nil, ErrNone }

// to returns whom an address stands for.
func (h *hub) to(address string) []*spoke {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.agents[address]; s != nil {
		return []*spoke{s}
	}
	return h.spaces[address]
}

// spoke is an agent of a hub. A frame of it is "receiver text".
type spoke struct {
	*hub
	in    chan Stamp
	gone  chan struct{}
	close sync.Once
}

func (s *spoke) Open(_ context.Context, w Way) (Line, error) {
	switch w.Kind {
	case OneShot:
		return nil, ErrNone
	case FanOut:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spaces[w.To] = append(s.spaces[w.To], s)
	}
	return NewTemplate([]byte(w.To + " " + string(w.Text))), nil
}

func (s *spoke) Send(frame []byte) error {
	to, text, _ := bytes.Cut(frame, []byte{' '})
	stamp, ok := Find(text)
	if !ok {
		return errors.New("a frame without a stamp")
	}
	times := 1
	if s.spoil != nil {
		times = s.spoil(stamp)
	}
	for _, dest := range s.to(string(to)) {
		for range times {
			select {
			case dest.in <- stamp:
			case <-s.gone:
				return io.ErrClosedPipe
			}
		}
	}
	return nil
}

func (s *spoke) Receive(r Receiver) error {
	for {
		select {
		case stamp := <-s.in:
			r.Arrived(stamp, now())
		case <-s.gone:
			return io.EOF
		}
	}
}

func (s *spoke) SetWriteDeadline(time.Time) error { return s.Close() }

func (s *spoke) Cut() error { return s.Close() }

func (s *spoke) Close() error {
	s.close.Do(func() { close(s.gone) })
	return nil
}

// carried puts a load on a hub, for as long as it takes to send so much of what is measured.
func carried(t *testing.T, cfg Config, least int64, made func() *hub) Result {
	t.Helper()
	cfg.Window, cfg.Size = 8, 50
	for cfg.Duration = 100 * time.Millisecond; ; cfg.Duration *= 4 {
		cfg.System = made()
		r, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		out := r.Measure(t.Context(), Servers{})
		r.Close()
		if out.Sent >= least || cfg.Duration > await.Long {
			return out
		}
	}
}

func TestWhatAnySystemCarriesIsAccountedFor(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{
		{Kind: Stream, Senders: 2, Receivers: 4},
		{Kind: Stream, Senders: 2, Receivers: 4, Rate: 500},
		{Kind: FanOut, Senders: 1, Receivers: 5},
		{Kind: FanOut, Senders: 1, Receivers: 5, Everyone: true, Burst: 1},
	} {
		cfg.Settle = await.Long
		out := carried(t, cfg, 1, newHub)
		if out.Failed() || out.Received == 0 || out.Total < out.Received || out.Lost != 0 || len(out.Errors) > 0 {
			t.Errorf("%+v: %+v", cfg, out)
		}
	}
}

func TestALossAndARepetitionAreCounted(t *testing.T) {
	t.Parallel()
	out := carried(t, Config{Kind: Stream, Senders: 1, Receivers: 2, Settle: 500 * time.Millisecond}, 50, func() *hub {
		h := newHub()
		h.spoil = func(s Stamp) int {
			switch s.Number {
			case 10:
				return 0
			case 20:
				return 2
			}
			return 1
		}
		return h
	})
	if out.Lost != 2 || out.Missed != 2 || out.Twice != 2 || !out.Failed() {
		t.Errorf("%+v; want 2 lost and 2 come again", out)
	}
}

// TestALineOpensWhenItsGreetingIsRepeated: a subscription may be on its way when the first message is sent.
func TestALineOpensWhenItsGreetingIsRepeated(t *testing.T) {
	t.Parallel()
	out := carried(t, Config{Kind: FanOut, Senders: 1, Receivers: 3, Settle: await.Long}, 1, func() *hub {
		h, greetings := newHub(), 0
		h.spoil = func(s Stamp) int {
			if s.Number == hello {
				greetings++
			}
			return min(1, greetings-1)
		}
		return h
	})
	if out.Failed() || out.Received == 0 {
		t.Errorf("%+v", out)
	}
}

func TestALineThatNeverOpensIsTold(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.spoil = func(Stamp) int { return 0 }
	r, err := Start(t.Context(), Config{Kind: Stream, Senders: 1, Receivers: 1, System: h, Duration: 1, Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if out := r.Measure(t.Context(), Servers{}); out.Errors["unheard"] != 1 {
		t.Errorf("%+v", out)
	}
}

func TestNoReceiptsAreNoResult(t *testing.T) {
	t.Parallel()
	cfg := Config{Kind: OneShot, Senders: 1, Receivers: 1, System: newHub(), Duration: time.Second}
	if _, err := Start(t.Context(), cfg); !errors.Is(err, ErrNone) {
		t.Errorf("a system without receipts starts with %v, want %v", err, ErrNone)
	}
}
