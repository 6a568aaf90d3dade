package simcluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/demux"
)

// readers are an agent whose mailbox its edge splits among readers: some stand still and lag, and get what comes live
// again once they have read the rest.
type readers struct {
	w     *world
	to    agora.Address
	moves chan bool // has it connect to another edge; true: before its edge knows that the connection is gone

	// Guarded by the world's mu.
	begun    bool // it was welcomed once
	opens    int
	newest   int // the youngest session, as it was welcomed
	token    string
	gaps     bool // it was told of one
	released bool // nobody stands still any more
	streams  map[string]*readStream
	dropped  map[string]bool // streams whose exchange was over once, whether or not its reader has noticed
	over     bool            // it has left
}

// readStream is what readers got of one stream.
type readStream struct {
	got   []int // uids, each once, in the order in which they came
	whole bool
	ended bool // by an error, or its reader has closed it
}

const reader agora.AgentID = "reader"

func newReaders(w *world) scene {
	return &readers{
		w: w, to: agora.ToAgent(agora.DefaultTenant, reader), moves: make(chan bool, 64), streams: map[string]*readStream{},
		dropped: map[string]bool{},
	}
}

func (s *readers) usual() string { return "says to readers" }

func (s *readers) steps() map[string]func(*dice) {
	return map[string]func(*dice){
		"says to readers": s.say,
		"its readers move": func(d *dice) {
			select {
			case s.moves <- d.coin():
			default:
			}
		},
	}
}

// say has an agent say a lot to the readers, most of it in streams.
func (s *readers) say(d *dice) {
	if s.w.tails[s.to] == nil {
		s.w.observe(s.w.scenes.ctx, s.to)
		s.w.running.Go(s.live)
	}
	a := s.w.anAgent(d)
	n := d.between(4, 16)
	what := d.some(n)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !a.began || !s.begun {
		return
	}
	a.lane(s.to).pad = longer
	for _, k := range what {
		a.make(s.to, k)
	}
}

// longer makes what is said to readers so long that one who lags does not read all that was said meanwhile at once.
const longer = 6 << 10

// live has the agent be connected to some edge, until the scenes are over.
func (s *readers) live() {
	d := newDice(s.w.plan.Seed)
	var now *splitter
	ctx := s.w.scenes.ctx
	for ctx.Err() == nil && !s.left() {
		next := s.enter(ctx, s.w.anEdge(d))
		if next == nil {
			rest(ctx, d.millis(50, 300))
			continue
		}
		if now != nil {
			now.leave(false)
		}
		now = next
		select {
		case early := <-s.moves:
			if !early {
				now.leave(s.left())
			}
		case <-now.lost:
			now.leave(false)
		case <-ctx.Done():
		}
	}
	if now != nil {
		now.leave(true)
	}
}

func (s *readers) left() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.over
}

// serve is one reader: it stands still now and then, and may close its stream before that is at its end.
func (s *readers) serve(turn int, x *demux.Exchange) {
	h := fnv.New64()
	_, _ = io.WriteString(h, string(x.Peer())+x.Stream()) // a hash takes everything
	own := newDice(h.Sum64() + s.w.plan.Seed)
	defer context.AfterFunc(x.Context(), func() { s.drop(x) })()
	slow, closes := own.between(0, 2) == 0, own.between(0, 7) == 0
	for {
		p, err := x.Next(context.Background())
		if err != nil {
			s.ended(turn, x, err)
			return
		}
		s.takes(turn, x, &p)
		if closes && own.between(0, 5) == 0 && x.Stream() != "" {
			s.ended(turn, x, errClosedEarly)
			return
		}
		if slow && own.between(0, 2) == 0 && !s.isReleased() {
			rest(x.Context(), own.millis(1, 3000))
		}
	}
}

// drop notes that an exchange is over: what still comes of it counts as received.
func (s *readers) drop(x *demux.Exchange) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.dropped[string(x.Peer())+"/"+x.Stream()] = true
}

var errClosedEarly = errors.New("its reader has closed it")

func (s *readers) isReleased() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.released
}

// of returns what is known of a stream; nil where that is over, or who reads it is of an older session than the one
// that reads it now. mu is held.
func (s *readers) of(turn int, x *demux.Exchange) *readStream {
	if x.Stream() == "" || turn < s.newest {
		return nil
	}
	name := string(x.Peer()) + "/" + x.Stream()
	t := s.streams[name]
	if t == nil {
		t = new(readStream)
		s.streams[name] = t
	}
	if t.ended {
		return nil
	}
	return t
}

// takes notes a part that a reader got. One that it got before is marked.
func (s *readers) takes(turn int, x *demux.Exchange, p *demux.Part) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	uid, err := strconv.Atoi(strings.TrimSpace(string(p.Body)))
	if err != nil || uid <= 0 || uid >= len(s.w.parts) {
		return // no agent's own
	}
	s.w.arrived[uid] = true
	t := s.of(turn, x)
	switch {
	case t == nil:
	case !slices.Contains(t.got, uid):
		t.got = append(t.got, uid)
	case !p.Redelivered && !p.Again && !s.w.lax:
		s.w.failLocked("a reader got part %d of %s again, and it is not marked", uid, x.Stream())
	}
}

// ended notes how a stream ended for its reader. Where the session was over there, another continues.
func (s *readers) ended(turn int, x *demux.Exchange, err error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	e, is := errors.AsType[*agora.Error](err)
	if t := s.of(turn, x); t != nil && !(is && e.Code == agora.Unavailable) {
		t.whole, t.ended = errors.Is(err, io.EOF), true
		s.w.note("a reader is done with %s: %v", x.Stream(), err)
	}
}

// received implements receiver: of a stream that ended for its reader before it had come to its end what followed
// counts as received, and a cancel is read by nobody.
func (s *readers) received(from *agent, by agora.AgentID, r *agora.ReceiptBody) bool {
	for _, p := range s.w.parts[1:] {
		if by != reader || p.from != from || p.lane.to != s.to || p.n != r.N || r.N == 0 {
			continue
		}
		name := string(from.id) + "/" + p.stream
		t := s.streams[name]
		if p.part == agora.Cancel || p.stream != "" && s.dropped[name] || t != nil && t.ended && !t.whole {
			return true
		}
	}
	return false
}

// missing implements scene: readers stand still no more, and every stream that has come to its end is read to there.
func (s *readers) missing() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.released = true
	for _, m := range s.w.logs[s.to] {
		if m.Kind == agora.Gap || s.gaps || s.w.lax {
			return ""
		}
		t := s.streams[string(m.From)+"/"+m.Stream]
		if m.Part == agora.End && m.Stream != "" && (t == nil || !t.ended) {
			return fmt.Sprintf("nobody has read %s to its end", m.Stream)
		}
	}
	return ""
}

// judge implements scene: what readers got of a stream is what the log has of it, from its beginning, in order and
// without a hole; all of it where it ended well.
func (s *readers) judge() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.over = true
	select {
	case s.moves <- false:
	default:
	}
	want, gap := map[string][]int{}, s.gaps || s.w.lax
	for i := range s.w.logs[s.to] {
		m := &s.w.logs[s.to][i]
		name := string(m.From) + "/" + m.Stream
		gap = gap || m.Kind == agora.Gap
		if uid, is := uidOf(m); is && !slices.Contains(want[name], uid) {
			want[name] = append(want[name], uid)
		}
	}
	for name, t := range s.streams {
		all := want[name]
		switch {
		case gap: // parts may be missing
		case len(t.got) > len(all) || !slices.Equal(t.got, all[:len(t.got)]):
			s.w.failLocked("readers got %v of %s, and the log has %v", t.got, name, all)
		case t.whole && len(t.got) < len(all):
			s.w.failLocked("readers got %v of %s and its end, and the log has %v", t.got, name, all)
		}
		if gap && !isWithin(t.got, all) && !s.w.lax {
			s.w.failLocked("readers got %v of %s, and the log has %v, in that order", t.got, name, all)
		}
	}
}

// isWithin reports whether all of what was got stands in what there is, in its order, but for what a gap has hidden
// from who watches.
func isWithin(got, all []int) bool {
	last := -1
	for _, uid := range got {
		k := slices.Index(all, uid)
		if k >= 0 && k < last {
			return false
		}
		last = max(last, k)
	}
	return true
}

// standsStill is how long at most a reader is waited for: what it holds back fills the mailbox.
const standsStill = 5 * time.Second
