package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// warnings keeps what is logged.
type warnings struct {
	mu sync.Mutex // guards the field below
	b  bytes.Buffer
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// clockAt returns settings of a machine whose clock is that far ahead.
func clockAt(d time.Duration, log *slog.Logger) func(*Config) {
	return func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(d) }
		c.Log = log
	}
}

func TestEdgesWhoseClocksAreHoursApartLoseNothing(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	var warned warnings
	log := slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
	skews := []time.Duration{0, -time.Hour, time.Hour}
	var edges []*Broker
	for _, d := range skews {
		edges = append(edges, testBroker(t, s, clockAt(d, log)))
	}
	inboxes := make([]*listener, len(edges))
	for k, b := range edges {
		inboxes[k] = listen(t, b, bob, From{TailAt: b.Now()})
	}
	began := time.Now()
	deadline := edges[1].Now().Add(time.Minute)
	var want []string
	for k, b := range edges {
		l := b.Lane(LaneConfig{From: "alice", Session: fmt.Sprint("s", k), Epoch: 1, To: bob})
		defer l.Close()
		for n := range 20 {
			m := text(fmt.Sprint(k, ".", n))
			m.Meta.Deadline = deadline
			store(t, l, m)
			want = append(want, string(m.Body))
		}
	}
	for k, in := range inboxes {
		got := in.read(t, len(want))
		if !slices.Equal(bodies(got), want) {
			t.Errorf("edge %d got %v", k, bodies(got))
		}
		if left := got[0].Meta.Deadline.Sub(edges[k].Now()); left > time.Minute+time.Second || left < time.Minute-time.Since(began)-time.Second {
			t.Errorf("edge %d: %v left until a deadline a minute from now", k, left)
		}
		st := edges[k].Stats()
		if off := st.Skew - skews[k]; off.Abs() > time.Second || st.Void != 0 {
			t.Errorf("edge %d: skew %v, %d void; want %v and none", k, st.Skew, st.Void, skews[k])
		}
	}
	if n := strings.Count(warned.String(), "clock is off"); n != 2 {
		t.Errorf("%d warnings, want one of each of the two that are wrong: %s", n, warned.String())
	}
}

func TestALateRecordIsVoidForEveryReader(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	late := testBroker(t, s, func(c *Config) { c.clock = func() time.Time { return time.Now().Add(-2 * record.VoidAfter) } }) // as if what it sends lay on its way for so long
	l := late.Lane(lane("s1", 1, false))
	store(t, l, part(agora.Start, "void", "void"))
	l.Close()
	heir := b.Lane(lane("s1", 2, true))
	defer heir.Close()
	wantCode(t, put(t, heir, part(agora.Chunk, "void", "x")), agora.StreamNotFound)
	store(t, heir, text("good"))
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"good"}) {
		t.Errorf("got %v", got)
	}
}
