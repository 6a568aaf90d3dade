package spaces

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestAStuckMemberLagsAloneAndCatchesUp(t *testing.T) {
	t.Parallel()
	const queue = 8 << 10
	es := edges(t, presence.Config{}, Config{QueueBytes: queue})
	stuck, _ := es[0].join(t, "stuck", "room", Where{})
	good, _ := es[0].join(t, "good", "room", Where{})
	far, _ := es[1].join(t, "far", "room", Where{})
	good.until("good", func(es []*Event) bool { return len(es) > 0 }) // far's roster
	const events = 150
	pad := strings.Repeat("x", 400)
	for i := range events {
		body := fmt.Sprintf("%03d%s", i, pad)
		es[1].say(t, "room", fmt.Sprint(i), body)
		good.until("good", seen(body))
	}
	stuck.place.mu.Lock()
	size, lagging, inbox := stuck.place.size, stuck.place.state.reads(), stuck.place.inbox
	stuck.place.mu.Unlock()
	if size > queue || !lagging || inbox != nil {
		t.Errorf("stuck holds %d bytes, lagging %v, reading %v, want at most %d, true, false", size, lagging, inbox != nil, queue)
	}
	last := fmt.Sprintf("%03d%s", events-1, pad)
	want := bodies(good.got)
	for name, l := range map[string]*listener{"stuck": stuck, "far": far} {
		if got := bodies(l.until(name, seen(last))); got != want {
			t.Errorf("%s did not get what good got: %d events, want %d", name, len(l.got), len(good.got))
		}
	}
	es[1].say(t, "room", "end", "end") // it keeps up again: the fan-out gives it this
	stuck.until("stuck", seen("end"))
	if _, _, caught := stuck.place.Tail(); !caught {
		t.Error("stuck did not come back to the fan-out")
	}
	if got := bodies(good.until("good", seen("end"))); bodies(stuck.got) != got {
		t.Error("stuck lost or repeated an event when it came back")
	}
}

// TestComingBackLosesAndRepeatsNothing runs random schedules of members that
// stall, take little or much, lose their place and resume at either edge from what
// they have, while events are published at both: each gets all once, in order.
func TestComingBackLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	rounds, steps := uint64(schedules), 150
	if testing.Short() {
		rounds = min(rounds, 4)
	}
	es := edges(t, presence.Config{}, Config{QueueBytes: 4 * overhead})
	for seed := firstSchedule; seed < firstSchedule+rounds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := schedule{t: t, edges: es, space: fmt.Sprint("room", seed), rand: rand.New(rand.NewPCG(seed, 11))}
			s.run(steps)
		})
	}
}

// schedule is one random run; everything in it happens one after the other,
// but for the pumps and inboxes, which run as they like.
type schedule struct {
	t       *testing.T
	edges   [2]*edge
	space   string
	rand    *rand.Rand
	said    []uint64
	members []*traveller
}

// traveller is a member that goes from edge to edge.
type traveller struct {
	*listener
	at    int    // edge
	got   int    // how many of said it has, from the first it was due
	after uint64 // its position
	stall int    // steps for which it takes nothing
}

func (s *schedule) run(steps int) {
	for range 1 + s.rand.IntN(4) {
		m := &traveller{}
		s.move(m, Where{HasLast: true})
		s.members = append(s.members, m)
	}
	for range steps {
		if s.t.Failed() {
			return
		}
		if s.rand.IntN(2) == 0 {
			s.say()
		}
		m := s.members[s.rand.IntN(len(s.members))]
		switch n := s.rand.IntN(40); {
		case n == 0:
			s.move(m, Where{HasLast: true, Last: m.after})
		case n == 1:
			s.move(m, Where{After: m.after})
		case n == 2:
			m.stall = 20
		case n < 25:
			s.take(m, 1+s.rand.IntN(5*overhead))
		}
	}
	s.settle()
}

// move gives m a place at some edge that continues from w. Position 0 is the log's start.
func (s *schedule) move(m *traveller, w Where) {
	if m.listener != nil {
		m.place.Close()
	}
	m.at = s.rand.IntN(2)
	e := s.edges[m.at]
	m.listener = newListener(s.t)
	if !w.HasLast && w.After == 0 {
		w = Where{HasLast: true}
	}
	m.place = e.Open(e.tenant, s.space, "m", w, m.wake)
}

func (s *schedule) say() {
	n := fmt.Sprint(len(s.said))
	s.said = append(s.said, s.edges[s.rand.IntN(2)].say(s.t, s.space, n, n))
}

// take has m take once, and checks that it is what follows. Where the log did not answer in time it takes nothing: it
// asks again later.
func (s *schedule) take(m *traveller, max int) bool {
	if m.stall--; m.stall > 0 {
		return false
	}
	es, err := m.place.Next(s.t.Context(), max)
	if err != nil && agora.AsError(err).Code != agora.Unavailable {
		s.t.Errorf("next: %v", err)
	}
	for i, e := range es {
		if m.got >= len(s.said) || e.Seq != s.said[m.got] || e.Kind != agora.Event {
			s.t.Errorf("member at edge %d got %s of kind %d at %d as number %d, in %q from %d on, of %v",
				m.at, e.Body, e.Kind, e.Seq, m.got, bodies(es), i, s.said)
			return false
		}
		m.got++
		m.after = e.Seq
	}
	return len(es) > 0
}

// settle has every member take until it has all, and be a member of its fan-out.
func (s *schedule) settle() {
	for i, m := range s.members {
		m.stall = 0
		for end := time.Now().Add(await.Long); m.got < len(s.said) && !s.t.Failed(); {
			if time.Now().Before(end) && (s.take(m, 4<<10) || m.place.Unheard()) {
				continue
			}
			select {
			case <-m.woken:
			case <-time.After(time.Until(end)):
				s.t.Errorf("member %d is stuck at %d of %d", i, m.got, len(s.said))
			}
		}
		if s.take(m, 1) {
			s.t.Errorf("member %d got more than there was", i)
		}
		m.place.Close()
	}
}

// Who must not wait takes what is queued, and learns where only Next continues.
func TestTakeDoesNotReadTheLog(t *testing.T) {
	t.Parallel()
	es := edges(t, presence.Config{}, Config{QueueBytes: 4 * overhead})
	l, _ := es[0].join(t, "slow", "room", Where{})
	keeps, _ := es[0].join(t, "keeps", "room", Where{})
	for i := range 10 {
		es[1].say(t, "room", fmt.Sprint(i), fmt.Sprint(i))
		keeps.until("keeps", seen(fmt.Sprint(i)))
	}
	for more := false; !more; {
		var got []*Event
		if got, more = l.place.Take(1 << 10); len(got) == 0 && !more {
			t.Fatalf("after %q Take says that this is all", bodies(l.got))
		}
		l.got = append(l.got, got...)
	}
	if got := bodies(l.got); got == bodies(keeps.got) {
		t.Fatalf("Take gave all of %q, which was more than the queue holds", got)
	}
	if got, want := bodies(l.until("slow", seen("9"))), bodies(keeps.got); got != want {
		t.Fatalf("Take and Next gave %q, want %q", got, want)
	}
	if got, more := l.place.Take(1 << 10); len(got) > 0 || more {
		t.Errorf("of nothing Take gave %d events, and says there is more: %v", len(got), more)
	}
	again := es[1].resume(t, "again", "room", Where{After: keeps.got[0].Seq, Marked: true})
	if got, more := again.place.Take(1 << 10); len(got) > 0 || !more {
		t.Errorf("before it is known what is to be marked Take gave %d events, and says there is more: %v", len(got), more)
	}
}
