package demux_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/pause"
)

// Readers of any speed, some of which close early, get each exchange in order, without a hole, and nothing twice that
// is not marked, though the agent's session moves from edge to edge meanwhile.
func TestEachExchangeIsWholeWhateverItsReadersAndHoldersDo(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	for seed := firstHistory; seed < firstHistory+histories; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			play(t, seed)
		})
	}
}

// history is what has come of what was sent.
type history struct {
	testing.TB
	seed uint64

	mu    sync.Mutex
	read  map[string]*told // by peer and stream, or message
	count int              // streams and messages that have come to their end
}

// told is what has come of one stream, or message.
type told struct {
	next  int // number of the next chunk
	begun bool
	over  bool // it ended, or its reader closed it
	early bool // it was closed
}

func play(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	c := start(t, agoratest.Options{Edges: 3})
	h := &history{TB: t, seed: seed, read: map[string]*told{}}
	cfg := demux.Config{
		Serve: h.serve, Queue: 1 << (8 + r.IntN(8)), Lagging: 1000, Whole: 1 + r.IntN(8), Records: 1 << 40,
	}
	n := enter(t, c, 0, "n", cfg, nil)
	var writers sync.WaitGroup
	sent, peers := 0, []peer{}
	for k := range 4 {
		p, r := registered(t, c, 1+k%2, fmt.Sprint("p", k)), rand.New(rand.NewPCG(seed, uint64(k+1)))
		plan := script(r)
		sent += len(plan.names)
		peers = append(peers, p)
		writers.Go(func() { p.Send(plan.frames...) })
	}
	changes := 1 + r.IntN(3)
	for k := range changes {
		await.True(t, "some of it has come", func() bool { return h.ended() >= sent*k/(changes+1) })
		n = h.move(c, n, 1+(k%2), cfg, r.IntN(2) == 0)
	}
	writers.Wait()
	await.True(t, "all has come to its end", func() bool { return h.ended() == sent })
	await.True(t, "all is consumed", func() bool { return n.Unconsumed() == 0 })
	await.True(t, "nothing is held", func() bool { return n.Held() == 0 }) // a reading of the log ends behind what it was for
	h.cancels(peers, changes)
	resume := n.welcome.ResumeToken
	n.leave()
	last := enter(t, c, 0, "n", demux.Config{}, func(h *edge.Hello) { h.Resume = resume })
	peers[0].say("the last")
	if p := next(t, last.exchange()); body(&p) != "the last" {
		t.Errorf("%q was consumed and comes again", p.Body)
	}
}

// move has the session go on at another edge: once its connection has gone, or by taking it over while that lives.
func (h *history) move(c *agoratest.Cluster, n *door, to int, cfg demux.Config, gone bool) *door {
	if gone {
		n.leave()
	}
	next := enter(h.TB, c, to, "n", cfg, func(hello *edge.Hello) { hello.Resume = n.welcome.ResumeToken })
	n.leave()
	return next
}

func (h *history) ended() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// plan is what one peer sends.
type plan struct {
	names  []string
	frames []string
}

// script returns streams that are interleaved, and messages between them.
func script(r *rand.Rand) (p plan) {
	type stream struct {
		name       string
		next, last int
	}
	var open []*stream
	for s := 0; s < 12 || len(open) > 0; {
		switch k := r.IntN(12); {
		case k == 0 && s < 12:
			open = append(open, &stream{name: fmt.Sprint("s", s), last: r.IntN(150)})
			s++
			p.names = append(p.names, open[len(open)-1].name)
			p.frames = append(p.frames, fmt.Sprintf(`{"type":"send","to":"n","stream":true,"stream_id":%q}`, open[len(open)-1].name))
		case k == 1:
			name := fmt.Sprint("m", len(p.names))
			p.names = append(p.names, name)
			p.frames = append(p.frames, fmt.Sprintf(`{"type":"send","to":"n","payload":%q}`, name))
		case len(open) > 0:
			at := r.IntN(len(open))
			if o := open[at]; o.next < o.last {
				p.frames = append(p.frames, fmt.Sprintf(`{"type":"send_chunk","to":"n","stream_id":%q,"chunk":"%d %s"}`,
					o.name, o.next, strings.Repeat("x", r.IntN(1<<r.IntN(12)))))
				o.next++
			} else {
				p.frames = append(p.frames, fmt.Sprintf(`{"type":"send_end","to":"n","stream_id":%q}`, o.name))
				open = append(open[:at], open[at+1:]...)
			}
		}
	}
	return p
}

// serve reads one exchange, as quickly as chance has it.
func (h *history) serve(x *demux.Exchange) {
	r := rand.New(rand.NewPCG(h.seed, rand.Uint64()))
	slow, closes := time.Duration(r.IntN(3))*time.Millisecond/2, r.IntN(6) == 0
	for {
		p, err := x.Next(context.Background())
		if err != nil {
			h.stopped(x, err)
			return
		}
		if h.takes(x, &p, closes && r.IntN(20) == 0) {
			return
		}
		if slow > 0 && r.IntN(8) == 0 {
			pause.For(x.Context(), slow)
		}
	}
}

// takes notes a part, and returns whether the exchange is to be closed now.
func (h *history) takes(x *demux.Exchange, p *demux.Part, closes bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := string(x.Peer()) + "/" + x.Stream()
	if p.Part == agora.Whole {
		name = string(x.Peer()) + "/" + body(p)
	}
	s := h.read[name]
	if s == nil {
		s = new(told)
		h.read[name] = s
	}
	if s.early {
		return true // its peer was not told before the session moved
	}
	again := s.over
	switch p.Part {
	case agora.Start:
		again, s.begun = s.begun, true
	case agora.Chunk:
		var at int
		fmt.Sscan(body(p), &at)
		if again = at < s.next; at > s.next {
			h.Errorf("%s goes on with %d where %d was next", name, at, s.next)
		}
		s.next = max(s.next, at+1)
	}
	if again && !p.Redelivered {
		h.Errorf("%s: %v %.10q comes again and is not marked", name, p.Part, p.Body)
	}
	if s.over {
		return false
	}
	s.early = closes && x.Stream() != ""
	if s.over = s.early || p.Part == agora.Whole || p.Part == agora.End; s.over {
		h.count++
	}
	return s.early
}

// stopped notes how an exchange ended.
func (h *history) stopped(x *demux.Exchange, err error) {
	if e, is := errors.AsType[*agora.Error](err); err != io.EOF && !(is && e.Code == agora.Unavailable) {
		h.Errorf("%s/%s ends with %v", x.Peer(), x.Stream(), err)
	}
}

// cancels checks that peers were told of streams that were closed, and of no others.
func (h *history) cancels(peers []peer, changes int) {
	for k, p := range peers {
		p.Send(`{"type":"space.list","id":"all before has come"}`)
		got := map[string]int{}
		for f := p.Take("a frame"); f.Type() != "space.list"; f = p.Take("a frame") {
			if f.Type() == "cancel" {
				got[f.Text("stream_id")]++
			}
		}
		h.mu.Lock()
		for name, times := range got {
			if s := h.read[fmt.Sprintf("p%d/%s", k, name)]; !s.early || times > 1+changes {
				h.Errorf("p%d was told %d times that %s is cancelled: %+v", k, times, name, *s)
			}
		}
		h.mu.Unlock()
	}
}
