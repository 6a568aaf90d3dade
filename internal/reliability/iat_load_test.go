package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// iatLoad is IAT agents under way beside the others, in bare HTTP: one that POSTs notifications and one that says them
// by WebSocket, to two that have a downlink, of which one comes back without a position; and two that POST requests,
// which a third and a fourth answer in chunks that they POST.
type iatLoad struct {
	*iatEdges
	name    string
	ctx     context.Context
	stop    context.CancelFunc
	enough  chan struct{}  // closed when nothing more is to be said
	talking sync.WaitGroup // those who begin something
	answers sync.WaitGroup
	links   []*iatDownlink
	tally   *verify.Tally
	tracks  map[string]*verify.Track // what listeners get, by sender and listener; never changed

	mu      sync.Mutex  // guards the fields below
	repeats int         // of what had come before
	next    int         // number of the next request
	handled map[int]int // by request
	whole   int         // answers that came whole
	again   int         // requests that were POSTed again
	ended   map[agora.Code]int
}

const (
	iatPace  = 30 * time.Millisecond // between two things that one agent says
	iatKinds = 2                     // senders, listeners, callers, and agents that answer: two of each

	notification verify.Kind = "notification"
)

// startIATLoad returns when its agents are there: listeners at edge 0, the WebSocket and the agents that answer at edge
// 1. The name is of this load alone.
func startIATLoad(t testing.TB, c *agoratest.Processes, name string) *iatLoad {
	t.Helper()
	l := &iatLoad{
		iatEdges: newIATEdges(t, c), name: name, enough: make(chan struct{}),
		tally: verify.New(time.Now, notification), tracks: map[string]*verify.Track{}, handled: map[int]int{}, ended: map[agora.Code]int{},
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(l.end)
	for k := range iatKinds {
		to, bob := l.listener(k), l.bob(k)
		for _, from := range []string{l.name + "-posts", l.name + "-socket"} {
			track := verify.NewTrack(to, &verify.Gaps{})
			l.tracks[from+" to "+to] = track
			verify.NewLine(l.tally, from+" to "+to, 1<<10, track)
		}
		l.links = append(l.links, l.downlink(to, 0, k == 0, func(e iatEnvelope) { l.hears(to, k == 0, e) }),
			l.downlink(bob, 1, true, func(e iatEnvelope) { l.isAsked(bob, e) }))
	}
	l.talking.Go(func() { l.speaks(l.name+"-posts", l.posts) })
	l.talking.Go(func() {
		s := &iatSocket{iatEdges: l.iatEdges, id: l.name + "-socket", at: 1}
		defer s.drop()
		l.speaks(s.id, s.say)
	})
	for k := range iatKinds {
		l.talking.Go(func() { l.asks(fmt.Sprint(l.name, "-caller-", k)) })
	}
	return l
}

func (l *iatLoad) listener(k int) string { return fmt.Sprint(l.name, "-listener-", k) }
func (l *iatLoad) bob(k int) string      { return fmt.Sprint(l.name, "-bob-", k) }

// end ends all of it, finished or not. Of a load that is nil there is nothing to end, and nothing to wait for.
func (l *iatLoad) end() {
	if l == nil {
		return
	}
	l.stop()
	l.talking.Wait()
	l.answers.Wait()
	for _, d := range l.links {
		d.close()
	}
	for _, v := range l.tally.News() {
		l.t.Errorf("IAT: %s: %s", v.Kind, v.Text)
	}
}

// kick cuts every downlink.
func (l *iatLoad) kick() {
	for _, d := range l.links {
		d.kick()
	}
}

// pace waits until more is to be said; false when no more is.
func (l *iatLoad) pace() bool {
	select {
	case <-l.enough:
		return false
	case <-l.ctx.Done():
		return false
	case <-time.After(iatPace):
		return true
	}
}

// speaks says one number after the other to the listeners in turn.
func (l *iatLoad) speaks(from string, say func(ctx context.Context, text string) agora.Code) {
	for i := 0; l.pace(); i++ {
		to := l.listener(i % iatKinds)
		line := l.tracks[from+" to "+to].Line()
		n := line.Take(verify.Sent{Kind: notification})
		code := say(l.ctx, envelope(fmt.Sprint("n-", i), "notification", "", from, to, fmt.Sprintf(`{"n":%d}`, n)))
		if l.ctx.Err() != nil {
			return
		}
		if code != "" {
			l.t.Errorf("number %d of %s to %s is refused with %s", n, from, to, code)
			line.Set(n, verify.Refused)
		}
		line.Set(n, verify.Stored)
	}
}

func (l *iatLoad) posts(ctx context.Context, text string) agora.Code {
	return l.insist(ctx, rand.IntN(len(l.at)), text)
}

// hears takes what a listener is sent. One that states its position gets each number once; what the other one has had
// before is marked.
func (l *iatLoad) hears(to string, exact bool, e iatEnvelope) {
	n, track := e.Payload.N, l.tracks[e.Header.From+" to "+to]
	switch {
	case track == nil:
		l.t.Errorf("IAT: %s got %s of %s, who sends it nothing", to, e.Header.ID, e.Header.From)
	case n != 0 && n <= track.Last() && !exact && e.Metadata.Redelivered:
		l.mu.Lock()
		l.repeats++
		l.mu.Unlock()
	default:
		track.Arrived(notification, n, 0)
	}
}

// isAsked has an agent answer a request. Where it was given up, its caller says whether that may be.
func (l *iatLoad) isAsked(bob string, e iatEnvelope) {
	if e.Header.Type != "request" {
		return
	}
	l.mu.Lock()
	l.handled[e.Payload.K]++
	l.mu.Unlock()
	l.answers.Go(func() {
		_ = l.answer(l.ctx, func() int { return rand.IntN(len(l.at)) }, bob, e, 0, len(answered)) // the caller sees what came of it
	})
}

// answer says chunks of an answer, each when the one before it is stored, and behind the last one the response. Each is
// POSTed at the edge that it is told first.
func (e *iatEdges) answer(ctx context.Context, edge func() int, from string, q iatEnvelope, begin, end int) agora.Code {
	for i := begin; i < end; i++ {
		id := fmt.Sprint(q.Header.ID, "-", i)
		if code := e.insist(ctx, edge(), envelope(id, "chunk", q.Header.ID, from, q.Header.From, fmt.Sprintf(`{"text":"%c"}`, answered[i]))); code != "" {
			return code
		}
	}
	if end < len(answered) {
		return ""
	}
	return e.insist(ctx, edge(), envelope(q.Header.ID+"-end", "response", q.Header.ID, from, q.Header.From, fmt.Sprintf(`{"k":%d}`, q.Payload.K)))
}

// asks makes one request after the other, each until it has ended, at any edges.
func (l *iatLoad) asks(caller string) {
	for l.pace() {
		l.mu.Lock()
		k := l.next
		l.next++
		l.mu.Unlock()
		tries := 0
		events := func(try int) bool { tries = try; return k%3 > 0 }
		text := envelope(fmt.Sprint("q-", k), "request", "", caller, l.bob(k%iatKinds), fmt.Sprintf(`{"action":"execute","query":"q","k":%d}`, k))
		a := l.persist(l.ctx, rand.IntN(len(l.at)), k, text, events, func(string) {})
		if l.ctx.Err() != nil {
			return
		}
		if a.err != nil {
			l.t.Errorf("IAT: request %d: %v", k, a.err)
		}
		l.mu.Lock()
		l.again += tries
		if a.code == "" {
			l.whole++
		} else {
			l.ended[a.code]++
		}
		l.mu.Unlock()
	}
}

// progress waits until so much more of everything has come.
func (l *iatLoad) progress(n int) {
	if l == nil {
		return
	}
	l.t.Helper()
	began, whole := l.state()
	await.True(l.t, "IAT agents hear more, and are answered", func() bool {
		now, answers := l.state()
		for lane := range began {
			if now[lane] < began[lane]+uint64(n) {
				return false
			}
		}
		return answers >= whole+n
	})
}

// state returns how far each lane has arrived, and how many answers have.
func (l *iatLoad) state() (lanes map[string]uint64, whole int) {
	lanes = map[string]uint64{}
	for lane, track := range l.tracks {
		lanes[lane] = track.Last()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return lanes, l.whole
}

// finish has nothing more be said, waits until everything that was has arrived, and judges. Answers may end in
// STREAM_ABORTED where that is said.
func (l *iatLoad) finish(aborts bool) {
	if l == nil {
		return
	}
	l.t.Helper()
	close(l.enough)
	said := make(chan struct{})
	l.answers.Go(func() {
		defer close(said)
		l.talking.Wait()
	})
	await.Recv(l.t, "all that IAT agents say is stored, and all requests are answered", said)
	var missing []string
	if !await.Within(await.Long, func() bool { missing = l.missing(); return len(missing) == 0 }) {
		l.t.Errorf("IAT: what was stored never came: %q", missing)
	}
	l.end()
	numbers, _ := l.state()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("IAT: numbers %v, %d came again and were marked; %d requests, %d answered, %d POSTed again, ended %v", numbers, l.repeats, l.next, l.whole, l.again, l.ended)
	for k, n := range l.handled {
		if n > 1 {
			l.t.Errorf("IAT: request %d was done %d times", k, n)
		}
	}
	for code, n := range l.ended {
		if code != agora.StreamAborted || !aborts {
			l.t.Errorf("IAT: %d requests ended with %s", n, code)
		}
	}
}

// missing says what was stored and has not come.
func (l *iatLoad) missing() (all []string) {
	for lane, track := range l.tracks {
		if got, want := track.Last(), track.Line().Wanted(); got < want {
			all = append(all, fmt.Sprintf("%s: %d, want %d", lane, got, want))
		}
	}
	return all
}
