package reliability

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// iatCell is one failure while requests of IAT agents are half answered. Edge 0 is that of callers and listeners, edge
// 1 that of the agent that answers and of all that it POSTs, and edge 2 stays.
type iatCell struct {
	name   string
	fault  func(*iatStage)
	again  bool // the callers lose their edge, and POST again
	gone   bool // the agent that answers is gone permanently
	always bool // played without chaos, too
}

var iatCells = []iatCell{
	{name: "the edge of callers and listeners is killed", fault: func(s *iatStage) { s.Edges[0].Kill() }, again: true, always: true},
	{name: "the edge of who answers is killed", fault: func(s *iatStage) { s.Edges[1].Kill() }},
	{name: "the edge of who answers is killed, with a chunk that it does not know to be stored", fault: lastChunkUnknown, always: true},
	{name: "both are killed", fault: func(s *iatStage) {
		s.Edges[0].Kill()
		s.Edges[1].Kill()
	}, again: true},
	{name: "who answers is gone, past its grace", fault: func(s *iatStage) {
		s.Edges[1].Kill()
		s.witness.close()
	}, gone: true},
	{name: "Redis is restarted, empty", fault: func(s *iatStage) {
		s.Redis.Stop()
		s.Redis.Start()
	}},
}

// TestRequestsOfIATAreDoneOnceAndAnsweredWholeWhateverDies breaks a part of a cluster between two chunks of answers
// that their callers read as events. What was POSTed and is not known to be stored is POSTed again elsewhere: each
// answer comes whole, in order and once, and nothing is done twice.
func TestRequestsOfIATAreDoneOnceAndAnsweredWholeWhateverDies(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.ProcessOptions{Lease: lease, Leases: []time.Duration{min(lease, doomed), min(lease, doomed)}})
	cells := slices.DeleteFunc(slices.Clone(iatCells), func(x iatCell) bool { return !chaos && !x.always })
	for n, x := range slices.Repeat(cells, rounds) {
		t.Run(x.name, func(t *testing.T) { x.run(t, c, n) })
		c.Under(t)
	}
}

// iatStage is a cluster with requests that are half answered.
type iatStage struct {
	*agoratest.Processes
	*iatLoad
	witness *iatDownlink // who answers

	mu    sync.Mutex // guards the fields below
	asked []iatEnvelope
	calls []*iatCall
}

// iatCall is a request, POSTed again elsewhere where its edge is lost.
type iatCall struct {
	again bool   // it was
	text  string // the chunks that have come by the last POST
	ended <-chan iatAnswer
}

const half = len(answered) / 2 // chunks that are said before the fault

// run plays a cell.
func (x iatCell) run(t testing.TB, c *agoratest.Processes, n int) {
	c.Under(t)
	c.Heal()
	s := &iatStage{Processes: c, iatLoad: startIATLoad(t, c, fmt.Sprint("iat-", n))}
	defer s.end()
	s.witness = s.downlink(fmt.Sprint("witness-", n), 1, true, s.note)
	defer s.witness.close()
	defer func() {
		if got := len(s.requests(0)); got != len(s.calls) {
			t.Errorf("the witness was asked %d times, want %d", got, len(s.calls))
		}
	}()
	s.opens(n)
	s.says(s.requests(opened), 0, half)
	s.heard(half, false)
	s.progress(2)
	x.fault(s)
	want, code := len(answered), agora.Code("")
	if x.gone {
		want, code = half, agora.StreamAborted
	} else {
		s.heard(half, x.again)
		s.opens(n) // more, while the agent that answers may be away
		all := s.requests(2 * opened)
		s.says(all[:opened], half, len(answered))
		s.says(all[opened:], 0, len(answered))
	}
	for k, call := range s.calls {
		a := await.Recv(t, "an answer", call.ended)
		if a.err != nil || !a.ended || a.code != code || a.text != answered[:want] {
			t.Errorf("request %d is answered %q and %q, %v; want %q and %q", k, a.text, a.code, a.err, answered[:want], code)
		}
	}
	s.progress(1)
	s.finish(false)
}

// lastChunkUnknown has the edge of who answers die when its chunks are stored, and it has not heard of that: they are
// said again elsewhere.
func lastChunkUnknown(s *iatStage) {
	s.Edges[1].DeafenLog()
	var said sync.WaitGroup
	for _, q := range s.requests(opened) {
		said.Go(func() {
			if code := s.answer(s.ctx, func() int { return 1 }, s.witness.id, q, half, half+1); code != "" {
				s.t.Errorf("a chunk that is said again elsewhere is refused with %s", code)
			}
		})
	}
	s.heard(half+1, false)
	s.Edges[1].Kill()
	said.Wait()
}

// note notes what the witness is asked.
func (s *iatStage) note(e iatEnvelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, e)
}

// requests returns what the witness was asked, once that is so many requests.
func (s *iatStage) requests(n int) (all []iatEnvelope) {
	s.t.Helper()
	await.True(s.t, fmt.Sprintf("the witness is asked %d times", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		all = slices.Clone(s.asked)
		return len(all) >= n
	})
	return all
}

// opens makes requests, first at edge 0, for events.
func (s *iatStage) opens(n int) {
	for range opened {
		k, ended := len(s.calls), make(chan iatAnswer, 1)
		call := &iatCall{ended: ended}
		s.mu.Lock()
		s.calls = append(s.calls, call)
		s.mu.Unlock()
		text := envelope(fmt.Sprintf("w-%d-%d", n, k), "request", "", fmt.Sprint("anna-", n), s.witness.id, fmt.Sprintf(`{"action":"execute","query":"q","k":%d}`, k))
		begins := func(try int) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			call.again, call.text = try > 0, ""
			return true
		}
		s.talking.Go(func() {
			ended <- s.persist(s.ctx, 0, k, text, begins, func(text string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				call.text = text
			})
		})
	}
}

// heard waits until so many chunks of each answer have come, by a request that was POSTed again where that is said.
func (s *iatStage) heard(chunks int, again bool) {
	s.t.Helper()
	await.True(s.t, fmt.Sprintf("%d chunks of each answer have come", chunks), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(s.calls, func(c *iatCall) bool { return len(c.text) < chunks || again && !c.again })
	})
}

// says has the witness say chunks of each answer, first at its own edge, and the response behind the last one.
func (s *iatStage) says(requests []iatEnvelope, begin, end int) {
	s.t.Helper()
	var saying sync.WaitGroup
	for _, q := range requests {
		saying.Go(func() {
			if code := s.answer(s.ctx, func() int { return 1 }, s.witness.id, q, begin, end); code != "" {
				s.t.Errorf("the answer to %s is refused with %s", q.Header.ID, code)
			}
		})
	}
	saying.Wait()
}
