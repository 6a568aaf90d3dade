package simcluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"net"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/faultnet"
)

// world is one history: edges, agents, and what is known of what they said.
type world struct {
	*backends
	plan    *Plan
	seen    Tally
	started int
	watcher *broker.Broker // sees the log, and no fault
	line    *faultnet.Link // of watcher
	memory  *redis.Client  // what presence holds
	space   agora.Address
	scenes  *scenes
	agents  []*agent
	running sync.WaitGroup // doors and their agents
	zombies sync.WaitGroup // edges that were killed
	watch   sync.WaitGroup
	unwatch context.CancelFunc // of watch
	began   time.Time

	refusing sync.Mutex // guards the field below
	refusals []refusal

	mu       sync.Mutex // guards the fields below
	edges    []*node
	doors    []*door
	parts    []*part
	ords     map[[2]string]int
	arrived  map[int]bool                      // messages that reached their receiver, by uid
	logs     map[agora.Address][]agora.Message // as the watcher saw them
	tails    map[agora.Address]*broker.Inbox
	silent   map[string]*silence // streams that their receiver has cancelled
	clock    int
	lax      bool // presence lost what it knew: of claims and rosters nothing is promised
	endless  bool // it fell back to what it knew once, and can't tell: nor of the ends of streams
	failures []string
	notes    []string
}

// newWorld starts edges and agents that nobody has connected yet.
func newWorld(t *testing.T, p *Plan) *world {
	w := &world{
		plan: p, began: time.Now(), parts: []*part{nil}, seen: Tally{Faults: map[string]int{}},
		ords: map[[2]string]int{}, arrived: map[int]bool{}, logs: map[agora.Address][]agora.Message{},
		tails: map[agora.Address]*broker.Inbox{}, silent: map[string]*silence{},
	}
	w.scenes = newScenes(w)
	var err error
	if w.backends, err = startBackends(p.Seed); err != nil {
		t.Fatal(err)
	}
	w.memory = redis.NewClient(&redis.Options{Addr: presenceAddr, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dialPresence(ctx) }})
	w.space = agora.ToSpace(agora.DefaultTenant, "room")
	for range p.Edges {
		w.startEdge(0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.line = faultnet.From(w.log.Dial)
	cfg := w.brokerConfig(&node{id: "watcher", log: w.line})
	cfg.InboxBytes = 1 << 20
	cfg.Audit, cfg.Probe = watcherAudit, watcherAudit
	if w.watcher, err = broker.Connect(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	ctx, w.unwatch = context.WithCancel(context.Background())
	for k := range p.Agents {
		a := &agent{
			w: w, id: agora.AgentID(fmt.Sprint("a", k)), names: naming(k % 3), reads: reading(k % 4),
			card: fmt.Sprint("a", k), lanes: map[agora.Address]*lane{}, boxes: map[string]*box{},
		}
		if k == 0 {
			a.wants = p.receipts()
		}
		to := agora.ToAgent(agora.DefaultTenant, a.id)
		a.boxes[""] = &box{to: to, seen: map[uint64]bool{}}
		w.agents = append(w.agents, a)
		w.observe(ctx, to)
	}
	w.observe(ctx, w.space)
	return w
}

// observe keeps all that is stored for an address, also what retention takes later.
func (w *world) observe(ctx context.Context, to agora.Address) {
	woken := make(chan struct{}, 1)
	in := w.watcher.Listen(to, broker.From{}, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	w.tails[to] = in
	w.watch.Go(func() {
		defer in.Close()
		for ctx.Err() == nil {
			ms, err := in.Next(ctx, 1<<20)
			w.mu.Lock()
			for k := range ms {
				if ms[k].Kind == agora.Gap {
					w.note("the watcher is told of a gap %d-%d at %s", ms[k].N, ms[k].Seq, to.Name())
				}
			}
			w.logs[to] = append(w.logs[to], ms...)
			w.mu.Unlock()
			if len(ms) > 0 {
				continue
			}
			wait := time.Hour
			if err != nil {
				wait = 20 * time.Millisecond
			}
			select {
			case <-woken:
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	})
}

// end stops everything of the history.
func (w *world) end() {
	w.scenes.stop()
	for _, e := range w.living() {
		e.freeze(false)
		e.log.Refuse(false)
		e.pres.Refuse(false)
	}
	for _, a := range w.agents {
		w.mu.Lock()
		d := a.d
		w.mu.Unlock()
		if d != nil {
			d.lose(0)
		}
	}
	for _, d := range w.every() {
		d.lose(0)
	}
	w.running.Wait()
	for _, e := range w.living() {
		w.zombies.Go(e.close)
	}
	w.zombies.Wait()
	w.unwatch()
	w.watch.Wait()
	w.watcher.Close()
	w.line.Close()       // a connection may have come to be while it closed
	_ = w.memory.Close() // its last call is over
	if err := w.stop(); err != nil {
		w.fail("the log did not end: %v", err)
	}
}

func (w *world) every() []*door {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*door(nil), w.doors...)
}

func (w *world) doorsOf(e *node) []*door {
	var out []*door
	for _, d := range w.every() {
		if d.e == e {
			out = append(out, d)
		}
	}
	return out
}

func (w *world) count() int { w.clock++; return w.clock }

// ordinal numbers what an agent says to an addressee, over all its sessions.
func (w *world) ordinal(a *agent, to agora.Address) int {
	k := [2]string{string(a.id), to.Name()}
	w.ords[k]++
	return w.ords[k]
}

// opened notes that a session was opened, unless it was taken over already.
func (w *world) opened(d *door) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.a.opens++
		d.turn = d.a.opens
	}
}

// moment is what was so when a door began to pull.
type moment struct{ newest, clock int }

func (w *world) newest(a *agent) moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return moment{a.newest, w.count()}
}

// pulled checks what a session hands to its door: that no younger one had done so before, and
// that nothing of it was cancelled before.
func (w *world) pulled(d *door, ds []edge.Delivery, before moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := d.a
	if d.turn < before.newest && !a.lax && !w.lax {
		w.failLocked("%s: session %d delivers at %s after session %d did", a.id, d.turn, d.e.id, before.newest)
	}
	a.newest = max(a.newest, d.turn)
	for i := range ds {
		m := ds[i].Message
		w.writes(m)
		if m == nil || m.Stream == "" || m.Kind == agora.Control {
			continue
		}
		s := w.silent[silentKey(a.id, m.From, m.Stream)]
		if s != nil && m.Again && m.Part == agora.Start && s.until == 0 {
			s.until = m.Seq
		}
		if s.covers(m.Seq) && s.at < before.clock && !a.lax {
			w.failLocked("%s: a part of %s comes after it was cancelled", a.id, m.Stream)
		}
	}
}

// writes notes what is written to a socket. mu is held.
func (w *world) writes(m *agora.Message) {
	if m == nil {
		return
	}
	if uid, ok := uidOf(m); ok && uid > 0 && uid < len(w.parts) {
		w.parts[uid].written = true
	} else if uid, err := strconv.Atoi(string(m.Body)); err == nil && m.Kind == agora.Control { // a cancel of what was refused
		w.parts[uid].written = true
	}
}

// silence is what a receiver is spared of a stream that it has cancelled: all that is stored before a start that is
// marked. That may be another stream's of its name.
type silence struct {
	at    int    // when
	until uint64 // where that start stands; 0 for nowhere yet
}

func (s *silence) covers(seq uint64) bool { return s != nil && (s.until == 0 || seq < s.until) }

func silentKey(by, from agora.AgentID, stream string) string {
	return string(by) + "<" + string(from) + "/" + stream
}

// silenced notes that an agent has cancelled a stream to it.
func (w *world) silenced(a *agent, p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s has cancelled %s", a.id, p.stream)
	w.silent[silentKey(a.id, p.from.id, p.stream)] = &silence{at: w.count()}
}

// handed notes what a session said to a part. What it refuses, its agent being gone, was lost between them.
func (w *world) handed(d *door, p *part, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.mu.Lock()
	gone := d.gone || d.closed
	d.mu.Unlock()
	p.taken = p.taken || err == nil || !gone
	p.refused = p.refused || err != nil
}

// refusal is what an edge has refused, whether its agent heard of it or not. A client without numbers that has not
// heard sends it again, and it then stands behind what was stored meanwhile.
type refusal struct {
	from *agent
	edge.Notice
}

// refuse notes a refusal.
func (w *world) refuse(a *agent, n edge.Notice) {
	w.refusing.Lock()
	defer w.refusing.Unlock()
	w.refusals = append(w.refusals, refusal{a, n})
}

// markRefused tells parts that they were refused. mu is held.
func (w *world) markRefused() {
	w.refusing.Lock()
	defer w.refusing.Unlock()
	for _, r := range w.refusals {
		for _, p := range w.parts[1:] {
			if p.from == r.from && p.lane.to == r.To && (r.Stream != "" && p.stream == r.Stream || r.RequestID != "" && p.id == r.RequestID) {
				p.refused = true
			}
		}
	}
	streams := map[string]bool{}
	for _, p := range w.parts[1:] {
		p.refused = p.refused || streams[p.stream] // what comes after it is dropped
		if p.refused && p.stream != "" {
			streams[p.stream] = true
		}
	}
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	w.note("FAILED %s", s)
	if len(w.failures) < 20 {
		w.failures = append(w.failures, s)
	}
}

// mostNotes is how many lines a story may have: a usual one has some hundreds, and some thousands with what edges log.
const mostNotes = 100_000

// note keeps what happened, for whom a failure puzzles. A story without an end is a failure, and is kept no further. mu
// is held.
func (w *world) note(format string, args ...any) {
	switch len(w.notes) {
	case mostNotes:
		w.failures = append(w.failures, fmt.Sprintf("the story has more than %d lines", mostNotes))
	case mostNotes + 1:
		return
	}
	w.notes = append(w.notes, fmt.Sprintf("%6.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// failed reports whether anything was found to be wrong.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}
