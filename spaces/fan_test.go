package spaces

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/await"
)

// still returns a hub and a fan that no pump moves: the test is the log, and
// what lags stays out.
func still(t testing.TB, queue int) (*Hub, *fan) {
	h := New(Config{QueueBytes: queue})
	t.Cleanup(h.Close)
	f := newFan(h, agora.ToSpace(agora.DefaultTenant, "room"), false)
	f.pump.Close()
	h.fans[f.to] = f
	f.refs++ // the test's own
	return h, f
}

func event(n int, body string) *Event {
	return newEvent(agora.Message{Kind: agora.Event, Body: []byte(body), Seq: uint64(n) << agora.SeqShift})
}

func events(from, to int) (es []*Event) {
	for n := from; n <= to; n++ {
		es = append(es, event(n, "body"))
	}
	return es
}

func numbers(es []*Event) (ns []int) {
	for _, e := range es {
		ns = append(ns, int(e.Seq>>agora.SeqShift))
	}
	return ns
}

// handed takes everything that the place was handed.
func handed(t testing.TB, p *Place) (ns []int) {
	t.Helper()
	for {
		es, err := p.Next(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(es) == 0 {
			return ns
		}
		ns = append(ns, numbers(es)...)
	}
}

func wantNumbers(t testing.TB, what string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s got %v, want %v", what, got, want)
	}
}

func open(h *Hub, f *fan, self string, w Where) (*Place, *atomic.Int32) {
	var woken atomic.Int32
	return h.Open(f.to.Tenant, f.to.Space, agora.AgentID(self), w, func() { woken.Add(1) }), &woken
}

func TestMembersAreHandedWhatFollowsTheirStart(t *testing.T) {
	h, f := still(t, 0)
	early, woken := open(h, f, "early", Where{}) // before the fan knows the log's end
	if early.Unheard() {
		t.Error("a place has something before the fan began")
	}
	f.open(event(3, "").Seq, time.Now())
	f.reach(f.pos, time.Now())
	late, _ := open(h, f, "late", Where{})
	exact, _ := open(h, f, "exact", Where{HasLast: true, Last: event(3, "").Seq})
	f.hand(events(4, 5))
	newest, _ := open(h, f, "newest", Where{})
	f.hand(events(6, 6))
	wantNumbers(t, "early", handed(t, early), []int{4, 5, 6})
	wantNumbers(t, "late", handed(t, late), []int{4, 5, 6})
	wantNumbers(t, "exact", handed(t, exact), []int{4, 5, 6})
	wantNumbers(t, "newest", handed(t, newest), []int{6})
	if n := woken.Load(); n != 2 {
		t.Errorf("early was woken %d times, want at the fan's start and when its queue was no longer empty", n)
	}
	for _, p := range []*Place{early, late, exact, newest} {
		p.Close()
	}
	if len(f.members) != 0 {
		t.Errorf("%d members after all places closed", len(f.members))
	}
}

func TestWakeComesWheneverTheQueueWasEmpty(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, woken := open(h, f, "a", Where{})
	defer p.Close()
	for i := 1; i <= 9; i += 3 {
		f.hand(events(i, i+1))
		f.hand(events(i+2, i+2)) // not empty: no second wake
		if n := int(woken.Load()); n != (i+2)/3 {
			t.Fatalf("woken %d times after %d rounds", n, (i+2)/3)
		}
		wantNumbers(t, "a", handed(t, p), []int{i, i + 1, i + 2})
	}
}

func TestAFullQueueMakesItsMemberLeave(t *testing.T) {
	h, f := still(t, 3*overhead+100)
	f.open(0, time.Now())
	stuck, _ := open(h, f, "stuck", Where{})
	defer stuck.Close()
	good, _ := open(h, f, "good", Where{})
	defer good.Close()
	for n := 1; n <= 100; n++ {
		f.hand(events(n, n))
		wantNumbers(t, "good", handed(t, good), []int{n})
	}
	if _, _, caught := stuck.Tail(); caught || !stuck.state.reads() || stuck.at != outside || len(stuck.queue) != 3 {
		t.Errorf("stuck: caught %v, lagging %v, %d queued, want false, true, 3", caught, stuck.state.reads(), len(stuck.queue))
	}
	if n := f.pressed.Load(); n != 0 {
		t.Errorf("%d members count as pressed, want 0", n)
	}
	// What it was handed comes first, then it is for the log to give.
	es, _ := stuck.take(1 << 20)
	wantNumbers(t, "stuck", numbers(es), []int{1, 2, 3})
	if !stuck.Unheard() {
		t.Error("stuck does not know that there is more")
	}
	if f.rejoin(stuck) {
		t.Error("stuck came back at 3, the fan was at 100")
	}
	stuck.pos.read(events(4, 99), 0)
	if f.rejoin(stuck) {
		t.Error("stuck came back at 99, the fan was at 100")
	}
	stuck.pos.read(events(100, 101), 0)
	if !f.rejoin(stuck) {
		t.Error("stuck did not come back at 101, the fan was at 100")
	}
	f.hand(events(101, 102)) // 101 was read already
	wantNumbers(t, "stuck", handed(t, stuck), []int{102})
}

// The fan's start may come at any moment of a Next that has seen its place lag.
func TestAPlaceIsOneMemberWhenTheFanStartsDuringNext(t *testing.T) {
	for what, rest := range map[string]func(*Place){
		"before it comes back":       func(p *Place) { p.rejoin() },
		"before it reads for itself": func(p *Place) { _, _ = p.read(t.Context(), 1<<20) },
	} {
		h, f := still(t, 0)
		p, _ := open(h, f, "a", Where{HasLast: true, Last: event(3, "").Seq})
		if es, lagging := p.take(1 << 20); len(es) > 0 || !lagging {
			t.Fatalf("before the start a place gave %v, lags %v", numbers(es), lagging)
		}
		f.open(event(3, "").Seq, time.Now())
		rest(p)
		if len(f.members) != 1 || p.inbox != nil {
			t.Errorf("%s: %d members, an inbox of its own %v, want one member without", what, len(f.members), p.inbox != nil)
		}
		f.hand(events(4, 4))
		wantNumbers(t, what, handed(t, p), []int{4})
		p.Close()
		if len(f.members) != 0 {
			t.Errorf("%s: a closed place is still a member", what)
		}
	}
}

// The start may also make it a member, and hand it more than its queue holds at once: it lags again, and has something
// to give first.
func TestWhatAPlaceWasHandedDuringNextComesBeforeWhatItReads(t *testing.T) {
	h, f := still(t, 3*overhead+100)
	h.cfg.Broker = shared.edges[0]
	p, woken := open(h, f, "a", Where{HasLast: true, Last: event(3, "").Seq})
	defer p.Close()
	if es, lagging := p.take(1 << 20); len(es) > 0 || !lagging {
		t.Fatalf("before the start a place gave %v, lags %v", numbers(es), lagging)
	}
	f.open(event(3, "").Seq, time.Now())
	f.hand(events(4, 7))
	if es, err := p.read(await.Context(t), 1<<20); len(es) > 0 || err != nil || p.inbox != nil {
		t.Errorf("with a full queue it gave %v, %v, reads by itself: %v", numbers(es), err, p.inbox != nil)
	}
	if woken.Load() == 0 || !p.Unheard() {
		t.Errorf("woken %d times, unheard %v: nobody will take what is queued", woken.Load(), p.Unheard())
	}
	es, _ := p.take(1 << 20)
	wantNumbers(t, "a", numbers(es), []int{4, 5, 6})
	if es, lagging := p.take(1 << 20); len(es) > 0 || !lagging {
		t.Errorf("behind its queue it gave %v, lags %v, want that it reads on from there", numbers(es), lagging)
	}
}

func TestABodyLargerThanTheQueuePassesAlone(t *testing.T) {
	h, f := still(t, 1000)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	for n := 1; n <= 3; n++ {
		f.hand([]*Event{event(n, string(make([]byte, 5000)))})
		wantNumbers(t, "a", handed(t, p), []int{n})
	}
}

func TestNextKeepsToMax(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	f.hand(events(1, 7))
	for _, want := range [][]int{{1, 2, 3}, {4, 5, 6}, {7}, nil} {
		es, err := p.Next(t.Context(), 3*(overhead+4))
		if err != nil {
			t.Fatal(err)
		}
		wantNumbers(t, "a", numbers(es), want)
	}
	f.hand(events(8, 9))
	if es, _ := p.Next(t.Context(), 0); len(es) != 1 {
		t.Errorf("Next with no room gave %d events, want 1", len(es))
	}
}

func TestAQuietPlaceKeepsNoBigBuffer(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	for n := range 5 {
		f.hand(events(100*n+1, 100*n+100))
		handed(t, p)
		if cap(p.queue) > roomy || cap(p.told.out) > roomy {
			t.Fatalf("a quiet place keeps room for %d and %d events", cap(p.queue), cap(p.told.out))
		}
	}
}

func TestCaughtWhenAllWasTaken(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	caught := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.caught()
	}
	if !caught() {
		t.Error("not caught at the start")
	}
	f.hand(events(1, 1))
	if caught() {
		t.Error("caught with an event in the queue")
	}
	handed(t, p)
	if !caught() {
		t.Error("not caught although all was taken")
	}
}

func TestAJoinerGathersBeforeItBegins(t *testing.T) {
	h, f := still(t, 0)
	f.open(wholeRecord(event(1, "").Seq), time.Now())
	var woken atomic.Int32
	place := func(after int) *Place {
		p := h.place(f.to, "a", func() { woken.Add(1) })
		f.hand(events(int(f.pos>>agora.SeqShift)+1, int(f.pos>>agora.SeqShift)+4))
		if woken.Load() != 0 || p.Unheard() {
			t.Error("a place that has not begun gives something")
		}
		p.begin(broker.From{After: wholeRecord(event(after, "").Seq)}, true, true)
		return p
	}
	p := place(3) // gathered 2 to 5, its roster stands at 3
	wantNumbers(t, "joiner", handed(t, p), []int{4, 5})
	p.Close()
	if n := woken.Swap(0); n != 1 {
		t.Errorf("woken %d times, want 1", n)
	}
	q := place(2) // gathered 6 to 9, wants more than that
	if !q.state.reads() || len(q.queue) != 0 {
		t.Error("a place that begins behind what it gathered does not lag")
	}
	q.Close()
	woken.Store(0)
	r := place(20) // beyond what it gathered: nothing may be given before 20
	f.hand(events(14, 21))
	wantNumbers(t, "joiner", handed(t, r), []int{21})
	r.Close()
}

func TestTheFanWaitsForMostMembersAndNotForFew(t *testing.T) {
	h, f := still(t, 4*overhead)
	f.open(0, time.Now())
	var places []*Place
	for i := range 3 {
		p, _ := open(h, f, fmt.Sprint(i), Where{})
		defer p.Close()
		places = append(places, p)
	}
	f.hand(events(1, 3)) // all three queues are more than half full
	if !f.crowded(3) {
		t.Error("the fan does not wait for three of three")
	}
	var taking sync.WaitGroup
	taking.Go(func() {
		handed(t, places[0])
		handed(t, places[1])
	})
	f.breathe(3)
	taking.Wait()
	if n := f.pressed.Load(); n != 1 {
		t.Errorf("%d members are pressed, want the one that took nothing", n)
	}
	if f.crowded(3) {
		t.Error("the fan waits for one of three")
	}
}

func TestRostersAreGivenOnceAndNotToWhoJoined(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p := h.place(f.to, "b", func() {})
	defer p.Close()
	p.told.known, p.told.version = wholeRecord(event(3, "").Seq), 12
	p.begin(broker.From{}, true, true)
	roster := func(n int, version uint64, body string) *Event {
		return newEvent(agora.Message{Kind: agora.Roster, N: version, Body: []byte(body), Seq: uint64(n) << agora.SeqShift})
	}
	a, b := `"members":["a"],"joined":"a","left":null`, `"members":["b"],"joined":"b","left":null`
	f.hand([]*Event{
		event(1, ""), roster(2, 2, a), // from an earlier life of the space: older than the answer
		roster(4, 11, a), roster(5, 12, b), // not newer than the answer
		roster(6, 13, a), roster(7, 13, a), // told again
		roster(8, 14, b), // its own
		roster(9, 15, a), event(10, ""),
	})
	wantNumbers(t, "b", handed(t, p), []int{1, 6, 9, 10})
}

func TestMarkedEventsAreCopies(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, _ := open(h, f, "a", Where{})
	defer p.Close()
	p.told.mark = wholeRecord(event(2, "").Seq)
	es := events(1, 3)
	f.hand(es)
	got, err := p.Next(t.Context(), 1<<20)
	if err != nil || len(got) != 3 {
		t.Fatalf("Next = %v, %v", got, err)
	}
	for i, want := range []bool{true, true, false} {
		if got[i].Redelivered != want || es[i].Redelivered || (got[i] == es[i]) == want {
			t.Errorf("event %d: redelivered %v, shared %v, want %v, %v", i+1, got[i].Redelivered, got[i] == es[i], want, !want)
		}
	}
}

func TestAMarkedPlaceIsLookedAtAtOnce(t *testing.T) {
	h, f := still(t, 0)
	f.open(0, time.Now())
	p, woken := open(h, f, "a", Where{HasLast: true, Marked: true})
	defer p.Close()
	if !p.Unheard() || woken.Load() != 1 {
		t.Errorf("unheard %v, woken %d times: what comes later would be marked too", p.Unheard(), woken.Load())
	}
}

func TestAGapIsNoPositionToComeBackAt(t *testing.T) {
	h, f := still(t, 0)
	f.open(event(5, "").Seq, time.Now())
	p, _ := open(h, f, "a", Where{HasLast: true, Last: event(900, "").Seq}) // of a log that is no more
	defer p.Close()
	if f.rejoin(p) {
		t.Fatal("came back at a position that only the client vouches for")
	}
	gap := newEvent(agora.Message{Kind: agora.Gap, Seq: event(900, "").Seq})
	p.pos.read([]*Event{gap}, 0)
	if f.rejoin(p) {
		t.Fatal("came back at a gap")
	}
	p.pos.read(nil, event(5, "").Seq)
	if !f.rejoin(p) {
		t.Error("did not come back at the log's end")
	}
}

func BenchmarkFanOut1000(b *testing.B) {
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			h, f := still(b, 0)
			f.open(0, time.Now())
			const members = 1000
			var places []*Place
			for i := range members {
				p := h.Open(f.to.Tenant, f.to.Space, agora.AgentID(fmt.Sprint(i)), Where{}, func() {})
				defer p.Close()
				places = append(places, p)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				f.hand(events(n+1, n+batch))
				n += batch
				for _, p := range places {
					if es, _ := p.Next(b.Context(), 1<<20); len(es) != batch {
						b.Fatalf("%d events", len(es))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch*members), "ns/delivery")
		})
	}
}
