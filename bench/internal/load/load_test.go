package load

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// hub is a target without servers: what is written to it arrives, as often as spoil says.
type hub struct {
	spoil func(n int64) int // how often text n arrives; once if nil
	stall func(n int64)     // called before text n is taken

	mu     sync.Mutex // guards agents
	agents map[string]*spoke
}

func newHub() *hub { return &hub{agents: map[string]*spoke{}} }

func (h *hub) Dial(_ Role, id string, _ int) (Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &spoke{hub: h, in: make(chan []byte, 1<<16), gone: make(chan struct{})}
	h.agents[id] = s
	return s, nil
}

func (h *hub) Resume(Agent, int) (Agent, error) { return nil, wire.ErrNone }

func (h *hub) Usage() Usage { return Usage{} }

// spoke is an agent of a hub. A frame of it is "receiver text".
type spoke struct {
	*hub
	in    chan []byte
	gone  chan struct{}
	close sync.Once
}

func (s *spoke) Stream(to string) (wire.Line, error) {
	return func(dst []byte, id uint64, text []byte) []byte {
		return append(append(append(dst, to...), ' '), text...)
	}, nil
}

func (s *spoke) Message(string) (wire.Line, error) { return nil, wire.ErrNone }
func (s *spoke) Space(string) (wire.Line, error)   { return nil, wire.ErrNone }

func (s *spoke) Write(b []byte) (int, error) {
	to, text, _ := bytes.Cut(b, []byte{' '})
	_, n, _, _ := read(text)
	times := 1
	if n != hello && s.spoil != nil {
		times = s.spoil(n)
	}
	if n != hello && s.stall != nil {
		s.stall(n)
	}
	s.mu.Lock()
	dest := s.agents[string(to)]
	s.mu.Unlock()
	for range times {
		select {
		case dest.in <- bytes.Clone(text):
		case <-s.gone:
			return 0, io.ErrClosedPipe
		}
	}
	return len(b), nil
}

func (s *spoke) Receive(h wire.Handler) error {
	for {
		select {
		case text := <-s.in:
			h.Text(text)
		case <-s.gone:
			return io.EOF
		}
	}
}

func (s *spoke) Close() error {
	s.close.Do(func() { close(s.gone) })
	return nil
}

var small = Config{Warm: 10 * time.Millisecond, Time: 100 * time.Millisecond, Size: 50, Window: 8, Patience: long}

// long is how long what must come is waited for, and what a time that is too short for a busy machine grows to.
const long = 2 * time.Minute

// saturate sends for as long as it takes to send so much.
func saturate(t *testing.T, shape Shape, cfg Config, least int64, target func() Target) Result {
	t.Helper()
	for ; ; cfg.Time *= 4 {
		r, err := Saturate(t.Context(), target(), "x", shape, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent >= least && r.Rate > 0 || cfg.Time > long {
			return r
		}
	}
}

func TestWhatIsSentIsAccountedFor(t *testing.T) {
	r := saturate(t, Shape{Senders: 2, Receivers: 4}, small, 1, func() Target { return newHub() })
	if r.Sent == 0 || r.Rate == 0 || r.Lost+r.Disordered+r.Faults != 0 {
		t.Errorf("%+v", r)
	}
}

func TestALossAndARepetitionAreCounted(t *testing.T) {
	t.Parallel()
	spoilt := func() Target {
		h := newHub()
		h.spoil = func(n int64) int {
			switch n {
			case 10:
				return 0
			case 20:
				return 2
			}
			return 1
		}
		return h
	}
	cfg := small
	cfg.Patience = 2 * time.Second // which is waited out
	r := saturate(t, Shape{Senders: 1, Receivers: 2}, cfg, 50, spoilt)
	if r.Lost != 2 || r.Disordered != 2 {
		t.Errorf("%+v; want 2 lost and 2 come again", r)
	}
}

// TestWhoHoldsTheLoadUpCannotHideIt stalls the sender once for a third of the time: that makes a third of the texts late,
// though only one was under way.
func TestWhoHoldsTheLoadUpCannotHideIt(t *testing.T) {
	h := newHub()
	var once sync.Once
	h.stall = func(n int64) {
		if n == 20 {
			once.Do(func() { time.Sleep(100 * time.Millisecond) }) // what is tested
		}
	}
	cfg := small
	cfg.Warm, cfg.Time = 0, 300*time.Millisecond
	r, err := Pace(t.Context(), h, "x", Shape{Senders: 1, Receivers: 1}, 1000, cfg)
	if err != nil || r.Lost != 0 || r.P99 < 80_000 {
		t.Errorf("%+v, %v; want a p99 of some 95 ms", r, err)
	}
}

func TestNoReceiptsAreNoResult(t *testing.T) {
	if r, err := OneShots(t.Context(), newHub(), "x", 4, small); !errors.Is(err, wire.ErrNone) {
		t.Errorf("%+v, %v", r, err)
	}
}
