package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// world is edges, senders and receivers under faults. Every message says in its body who sent it, to
// whom, as which of theirs, and which part of its stream it is, so that receivers can judge it alone.
type world struct {
	t     *testing.T
	edges []*Broker
	boxes []agora.Address

	mu       sync.Mutex     // guards the fields below
	stored   map[string]int // bodies that some lane said to be stored, and how they came there
	finished bool
}

// frame is what a client wrote: it keeps it until it has a receipt.
type frame struct {
	m   agora.Message
	ord int
}

// style is how a client tells its frames apart.
type style int

const (
	bynumber style = iota
	byindex        // and whole messages by id
	plain          // sends nothing again
)

type sender struct {
	w       *world
	r       *rand.Rand
	name    agora.AgentID
	to      agora.Address
	style   style
	epoch   uint64
	dirty   uint64
	lane    *Lane
	zombies []*Lane
	zombie  []agora.Message // written to the last edge's socket, not read there yet
	unread  bool            // what is sent goes there
	ord     int
	n       uint64
	streams map[string]int // open ones, and how many parts were sent
	ever    int

	mu      sync.Mutex // guards the fields below
	unsure  []frame    // without a receipt
	waiting int        // results to come from the lane of this epoch
	again   bool       // something was UNAVAILABLE: send again
	broken  map[string]bool
	lease   *atomic.Bool
}

func (s *sender) body(stream string, pos int) []byte {
	return fmt.Appendf(nil, "%s|%s|%d|%s|%d", s.name, s.to.Name(), s.ord, stream, pos)
}

// take makes the sender's lane at another edge, under the next epoch. The old one may go on as a zombie.
func (s *sender) take(clean bool) {
	if s.lane != nil && clean {
		s.lease.Store(true) // else what is owed could not be stored, and the hand-over were none
		clean = s.lane.Flush(await.Context(s.w.t)) == nil
		s.lane.Close()
	} else if s.lane != nil {
		s.zombies = append(s.zombies, s.lane)
		s.zombie = nil
		s.unread = true // the old edge reads on from a socket that the client has given up
		for range s.r.IntN(8) {
			s.send()
		}
		s.unread = false
	}
	if !clean {
		s.dirty = s.epoch
	}
	s.mu.Lock()
	s.epoch++
	s.mu.Unlock()
	s.lease = new(atomic.Bool)
	s.lease.Store(true)
	lease := s.lease
	s.lane = s.w.edges[s.r.IntN(len(s.w.edges))].Lane(LaneConfig{
		From: s.name, Session: "s-" + string(s.name), Epoch: s.epoch, To: s.to, Used: s.epoch > 1, Dirty: s.dirty,
		Valid: func() (time.Time, bool) { return time.Now(), lease.Load() },
	})
	s.mu.Lock()
	s.waiting, s.again = 0, false
	s.mu.Unlock()
	cut := s.r.IntN(len(s.zombie) + 1)
	s.haunt(s.zombie[:cut])
	s.resend()
	s.haunt(s.zombie[cut:])
	s.zombie = nil
}

// haunt has the last edge's lane take what it finds in its socket.
func (s *sender) haunt(ms []agora.Message) {
	for _, m := range ms {
		body := string(m.Body)
		s.zombies[len(s.zombies)-1].Put(m, func(r Result) { s.w.receipt(body, r, 1000) })
	}
}

// resend sends what has no receipt, in order, as a client does after a reconnect.
func (s *sender) resend() {
	s.mu.Lock()
	frames := s.unsure
	if s.style == plain {
		frames, s.unsure = nil, nil
	}
	s.mu.Unlock()
	for _, f := range frames {
		s.put(f.m)
	}
	for name := range s.streams {
		if s.style == plain && s.dirty == s.epoch-1 {
			delete(s.streams, name) // what was lost with the edge can't be known: given up
		}
	}
}

func (s *sender) put(m agora.Message) {
	epoch := s.epoch
	if s.unread {
		s.zombie = append(s.zombie, m)
		return
	}
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	body := string(m.Body)
	s.lane.Put(m, func(r Result) { s.told(epoch, m, body, r) })
}

// told hears a result. One of an older epoch has no socket to go to.
func (s *sender) told(epoch uint64, m agora.Message, body string, r Result) {
	s.w.receipt(body, r, int(epoch))
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch != s.epoch {
		return
	}
	s.waiting--
	e := agora.AsError(r.Err)
	if e != nil && e.Code == agora.Unavailable && s.style == bynumber {
		s.again = true
		return
	}
	if e != nil && m.Stream != "" {
		s.broken[m.Stream] = true
	}
	for i := range s.unsure {
		if string(s.unsure[i].m.Body) == body {
			s.unsure = append(s.unsure[:i:i], s.unsure[i+1:]...)
			break
		}
	}
}

// receipt notes what a lane says to be stored.
func (w *world) receipt(body string, r Result, how int) {
	if r.Err == nil {
		w.mu.Lock()
		w.stored[body] = how
		w.mu.Unlock()
	}
}

// settle waits for the results of the lane.
func (s *sender) settle() {
	await.True(s.w.t, "the lane answers", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiting == 0 })
}

// send writes one frame: a whole message, or a part of a stream.
func (s *sender) send() {
	m := agora.Message{}
	pos := 0
	name := s.pick()
	switch {
	case name == "" && s.r.IntN(2) == 0:
		s.ever++
		name = fmt.Sprintf("%s-%d", s.name, s.ever)
		m.Part = agora.Start
	case name != "":
		m.Part = []agora.Part{agora.Chunk, agora.Chunk, agora.Chunk, agora.Chunk, agora.End, agora.Cancel}[s.r.IntN(6)]
		pos = s.streams[name]
	}
	s.ord++
	m.Stream, m.Body = name, s.body(name, pos)
	if s.style == bynumber {
		s.n++
		m.N = s.n
	} else if s.style == byindex && name != "" {
		m.Indexed, m.Index = true, uint32(pos)
	} else if s.style == byindex {
		m.ID = string(m.Body)
	}
	if name != "" {
		s.streams[name] = pos + 1
	}
	if m.Part.Ends() {
		delete(s.streams, name)
	}
	s.mu.Lock()
	s.unsure = append(s.unsure, frame{m, s.ord})
	s.mu.Unlock()
	s.put(m)
}

// pick returns an open stream or none.
func (s *sender) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.streams {
		if s.broken[name] {
			delete(s.streams, name)
		} else if s.r.IntN(3) > 0 {
			return name
		}
	}
	return ""
}

func (s *sender) run(steps int) {
	s.take(true)
	for range steps {
		switch k := s.r.IntN(100); {
		case k < 2:
			s.take(s.r.IntN(2) == 0)
		case k < 3 && s.style != byindex: // what was refused and is sent again comes late, unless numbers tell
			s.lease.Store(false)
		case k < 8:
			s.settle()
		default:
			s.send()
		}
		if s.r.IntN(5) == 0 {
			s.lease.Store(true)
		}
		s.mu.Lock()
		again := s.again
		s.mu.Unlock()
		if again {
			s.settle()
			s.mu.Lock()
			s.again = false
			s.mu.Unlock()
			s.resend()
		}
	}
	s.end()
}

// end sends all that is left, and ends the session from two edges at once.
func (s *sender) end() {
	s.lease.Store(true)
	for left := true; left; {
		s.settle()
		s.mu.Lock()
		left = s.again
		s.again = false
		s.mu.Unlock()
		if left {
			s.resend()
		}
	}
	var wg sync.WaitGroup
	for _, b := range s.w.edges[:2] {
		wg.Go(func() {
			cfg := LaneConfig{From: s.name, Session: "s-" + string(s.name), Epoch: s.epoch + 1, To: s.to, Used: true}
			if err := b.EndLane(await.Context(s.w.t), cfg); err != nil {
				s.w.t.Errorf("EndLane: %v", err)
			}
		})
	}
	wg.Wait()
	for _, l := range append(s.zombies, s.lane) {
		l.Close()
	}
}

// receive reads a box to its end, at edges that change all the time.
func (w *world) receive(r *rand.Rand, to agora.Address) []agora.Message {
	var all []agora.Message
	var after uint64
	ctx := await.Context(w.t)
	for ctx.Err() == nil {
		b := w.edges[r.IntN(len(w.edges))]
		woken := make(chan struct{}, 1)
		in := b.Listen(to, From{After: after, TailAt: time.Now(), Tail: after}, func() { signal(woken) })
		for range r.IntN(20) + 1 {
			msgs, err := in.Next(ctx, 1+r.IntN(8<<10))
			if len(msgs) == 0 || err != nil {
				select {
				case <-woken:
				case <-time.After(time.Duration(r.IntN(50)) * time.Millisecond):
				}
				continue
			}
			if r.IntN(3) == 0 {
				msgs = msgs[:1+r.IntN(len(msgs))]
				all = append(all, msgs...)
				break
			}
			all = append(all, msgs...)
		}
		in.Close()
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		w.mu.Lock()
		finished := w.finished
		w.mu.Unlock()
		if last, err := b.Last(ctx, to); finished && err == nil && after == last {
			return all
		}
	}
	w.t.Errorf("%v never reached its end", to)
	return all
}

// judge checks one box: once, in order, nothing lost that was receipted, streams whole up to their one end.
func (w *world) judge(to agora.Address, got []agora.Message) {
	ords, seen := map[string]int{}, map[string]bool{}
	next, over := map[string]int{}, map[string]bool{}
	for i, m := range got {
		if i > 0 && m.Seq <= got[i-1].Seq {
			w.t.Fatalf("%s: position %d after %d", to.Name(), m.Seq, got[i-1].Seq)
		}
		if m.Kind == agora.Gap || m.Again {
			w.t.Fatalf("%s: nothing was lost to retention, yet %+v", to.Name(), m)
		}
		if m.Stream != "" && over[m.Stream] {
			w.t.Fatalf("%s: %s part %d after its end", to.Name(), m.Stream, m.Part)
		}
		over[m.Stream] = m.Part.Ends()
		if m.Part == agora.Abort {
			continue
		}
		body := string(m.Body)
		f := strings.Split(body, "|")
		ord, _ := strconv.Atoi(f[2])
		pos, _ := strconv.Atoi(f[4])
		if seen[body] || string(m.From) != f[0] || to.Name() != f[1] {
			w.t.Fatalf("%s: %s twice, or not what was sent", to.Name(), body)
		}
		if ord <= ords[f[0]] {
			w.t.Fatalf("%s: %s after number %d", to.Name(), body, ords[f[0]])
		}
		if m.Stream != "" && pos != next[m.Stream] {
			w.t.Fatalf("%s: %s, expected part %d", to.Name(), body, next[m.Stream])
		}
		seen[body], ords[f[0]] = true, ord
		next[m.Stream]++
	}
	for name := range next {
		if name != "" && !over[name] {
			w.t.Errorf("%s: %s never ended", to.Name(), name)
		}
	}
	for body, how := range w.stored {
		if strings.Split(body, "|")[1] == to.Name() && !seen[body] {
			w.t.Errorf("%s: %s was said to be stored by %d, and never arrived", to.Name(), body, how)
		}
	}
}

func TestEachMessageOnceAndInOrderWhateverHappens(t *testing.T) {
	t.Parallel()
	seeds, steps := uint64(histories), 250
	if testing.Short() {
		seeds, steps = 1, 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runWorld(t, seed, 1, steps)
		})
	}
}

func runWorld(t *testing.T, seed uint64, nodes, steps int) {
	r := rand.New(rand.NewPCG(seed, 1))
	srv := testServer(t, nodes)
	w := &world{t: t, stored: make(map[string]int)}
	var cables []*faultnet.Proxy
	for k := range 3 {
		w.edges = append(w.edges, testBroker(t, srv, func(c *Config) {
			c.Replicas, c.InboxBytes, c.GiveUp, c.Retry, c.Shards = nodes, 8<<10, 700*time.Millisecond, 300*time.Millisecond, 2
			c.Audit, c.mature, c.read, c.tail, c.Election = time.Second, 0, 0, 0, 0 // as edges have it
			if nodes == 1 && k > 0 {
				cables = append(cables, testCable(t, srv))
				c.URL = cables[k-1].Addr()
			}
		}))
	}
	for k := range 2 {
		w.boxes = append(w.boxes, agora.ToAgent("default", agora.AgentID(fmt.Sprint("box ", k))))
	}
	w.boxes = append(w.boxes, agora.ToSpace("default", "room"))
	boxes := make([][]agora.Message, len(w.boxes))
	var sending, receiving sync.WaitGroup
	for k, to := range w.boxes {
		mine := rand.New(rand.NewPCG(seed, uint64(k)+100))
		receiving.Go(func() { boxes[k] = w.receive(mine, to) })
	}
	for k := range 9 {
		s := &sender{w: w, r: rand.New(rand.NewPCG(seed, uint64(k)+10)), name: agora.AgentID(fmt.Sprint("sender", k)), to: w.boxes[k%3],
			style: style(k / 3), streams: map[string]int{}, broken: map[string]bool{}}
		sending.Go(func() { s.run(steps) })
	}
	stop := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() { w.trouble(r, srv, cables, stop) })
	sending.Wait()
	close(stop)
	faults.Wait()
	w.mu.Lock()
	w.finished = true
	w.mu.Unlock()
	receiving.Wait()
	total := 0
	for k, to := range w.boxes {
		w.judge(to, boxes[k])
		total += len(boxes[k])
	}
	if total < 3*steps {
		t.Errorf("%d messages arrived: the test tests little", total)
	}
	for k, b := range w.edges {
		t.Logf("edge %d: %+v", k, b.Stats())
	}
}

// trouble cuts cables, holds up answers, and has servers go away.
func (w *world) trouble(r *rand.Rand, srv *natsd.Server, cables []*faultnet.Proxy, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(20+r.IntN(150)) * time.Millisecond):
		}
		if len(cables) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			_ = srv.StepDown(ctx, w.edges[0].Streams()[r.IntN(4)]) // the next try comes soon
			cancel()
			continue
		}
		c := cables[r.IntN(len(cables))]
		switch r.IntN(6) {
		case 0:
			srv.StopNode(0)
			if err := srv.StartNode(0); err != nil {
				w.t.Error(err)
			}
		case 1, 2:
			c.Reset()
		default:
			c.Deafen()
			<-time.After(time.Duration(r.IntN(400)) * time.Millisecond)
			if r.IntN(2) == 0 {
				c.Reset()
			}
			c.Mend()
		}
	}
}
