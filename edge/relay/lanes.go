package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// lane is a broker lane and its addressee.
type lane struct {
	*broker.Lane
	peer   *peer
	paused bool      // Pressed was told; guarded by its laneSet's mu, as the next three
	using  int       // messages on their way into it
	idle   time.Time // since when none is
	aside  bool      // it was put aside: another one continues in its place
	last   uint64    // stream sequence of the last stored record; used on the broker's goroutine alone
}

// laneSet is the lanes of one session, one to each addressee: those that are open, those that were put aside, and those
// that earlier holders have used. What is on its way in all of them shares one window. Its methods may be called at the
// same time.
type laneSet struct {
	relay  *Relay
	cfg    SenderConfig
	window window

	mu       sync.Mutex // guards the fields below, and those of who embeds a laneSet; maps are made when something comes into them
	lanes    map[agora.Address]*lane
	used     map[agora.Address][]presence.OpenStream // lanes of earlier holders, not yet used here
	parked   map[agora.Address]broker.Parked         // lanes put aside
	patience int                                     // lanes open before trim looks again
	forgot   bool                                    // some of those are not even known any more: any lane may have been used
	numbers  numbering
	closed   bool
}

// put puts a value into a map, which it makes where there is none: most agents never send.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// lane returns the lane to an address, making it where it is missing. The caller releases it.
func (s *laneSet) lane(to agora.Address) *lane {
	s.mu.Lock()
	l := s.lanes[to]
	if l == nil {
		s.mu.Unlock()
		p := s.relay.peer(to) // which all senders share
		s.mu.Lock()
		if l = s.lanes[to]; l == nil {
			l = s.newLane(to, p)
		}
	}
	l.using++
	s.mu.Unlock()
	return l
}

// newLane makes a lane, or has one that was put aside go on; mu is held.
func (s *laneSet) newLane(to agora.Address, p *peer) *lane {
	cfg := broker.LaneConfig{
		From: s.cfg.Claim.Agent, Session: s.cfg.Claim.Session, Epoch: s.cfg.Claim.Epoch,
		// A resumed session may have used lanes that presence has lost the word of.
		To: to, Used: s.mayHaveUsed(to) || s.cfg.Claim.Resumed, Dirty: s.cfg.Dirty, Open: openStreams(s.used[to]),
		Valid: s.relay.cfg.Valid, Deposed: s.cfg.Deposed, Payer: s.cfg.Principal,
	}
	if parked, ok := s.parked[to]; ok {
		cfg.Parked = &parked
	}
	delete(s.used, to)
	delete(s.parked, to)
	l := &lane{peer: p, Lane: s.relay.cfg.Broker.Lane(cfg)}
	p.lanes.Add(1)
	if s.closed {
		l.Close()
	}
	put(&s.lanes, to, l)
	s.trim()
	return l
}

func openStreams(open []presence.OpenStream) []broker.OpenStream {
	var out []broker.OpenStream
	for _, o := range open {
		out = append(out, broker.OpenStream{Stream: o.Stream, Kind: o.Kind, Indexed: o.Indexed})
	}
	return out
}

// put puts a message into the lane to an address.
func (s *laneSet) put(to agora.Address, m agora.Message, done func(broker.Result)) {
	l := s.lane(to)
	l.Put(m, done)
	s.release(l)
}

// release says that a message is in its lane, or will not be.
func (s *laneSet) release(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.using--; l.using == 0 {
		l.idle = time.Now()
	}
}

// pace slows streams to an addressee whose unread part is too large, and refuses one-shots. Streams that the addressee
// alone of all it is sent does not keep up with are slowed, too.
func (s *laneSet) pace(l *lane, m *agora.Message) error {
	full, wait := l.peer.pressed(), pause
	slow := full || l.peer.slows(s.cfg.Claim.Agent)
	switch {
	case l.peer.over.Load() && m.Part <= agora.Chunk:
		return agora.Errorf(agora.RateLimited, "the answer is not read by who has asked")
	case full && m.Part == agora.Whole && (m.Kind == agora.Request || m.Kind == agora.Reply):
		return errFull
	case l.peer.to.IsBox():
		wait = boxPause
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slow != l.paused {
		l.paused = slow
		if slow {
			l.Pressed(wait)
		} else {
			l.Pressed(0)
		}
	}
	return nil
}

// pass tells the lanes to an address that a number is used up: the lane of a box, and that of the mailbox beside it, as
// either may wait for the number.
func (s *laneSet) pass(to agora.Address, n uint64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	l, mailbox := s.lanes[to], s.lanes[to.Peer()]
	s.mu.Unlock()
	if l != nil {
		l.Pass(n)
	}
	if mailbox != nil && mailbox != l {
		mailbox.Pass(n)
	}
}

// Flush returns nil once nothing is under way on any lane and nothing was
// given up: a clean hand-over. Nothing may be sent meanwhile.
func (s *laneSet) Flush(ctx context.Context) error {
	var first error
	for _, l := range s.all() {
		if err := l.Flush(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *laneSet) all() []*lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes := make([]*lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		lanes = append(lanes, l)
	}
	return lanes
}

// addresses returns to whom the session has sent something, with room for what is open there; mu is held. Of the boxes
// of calls only answers that are open count.
func (s *laneSet) addresses() map[agora.Address][]presence.OpenStream {
	open := map[agora.Address][]presence.OpenStream{}
	for to := range s.used {
		open[to] = nil
	}
	for to := range s.lanes {
		if !to.IsBox() {
			open[to] = nil
		}
	}
	for to := range s.parked {
		open[to] = nil
	}
	return open
}

// Held returns the bytes that are under way: gathered, or sent and not stored yet. It does not block.
func (s *laneSet) Held() int { return s.window.held() }

// closeAll ends every lane here; what is not stored is answered with UNAVAILABLE.
func (s *laneSet) closeAll() {
	for _, l := range s.all() {
		l.Close()
		l.peer.lanes.Add(-1)
	}
}

// Bounds of the lanes that a sender keeps open. A lane is a few kilobytes; one that was put
// aside is a few words, and continues as if it had stayed.
const (
	laneIdle  = 3 * time.Minute // without a message, before a lane is put aside: longer than anything of it can be said again under its id
	laneTrim  = 30 * time.Second
	fewLanes  = 256   // open; beyond it those idle for longest are put aside at once, if that is cheap
	maxLanes  = 4096  // open; beyond it whatever it costs when they are used again
	maxParked = 16384 // put aside; beyond it some are forgotten, and lanes not known then begin as an heir's do: by reading the log
)

// mayHaveUsed reports whether the session may have sent something to an address before; mu is held.
func (s *laneSet) mayHaveUsed(to agora.Address) bool {
	_, used := s.used[to]
	_, parked := s.parked[to]
	return used || parked || s.forgot
}

// trim puts lanes aside when there are too many, those idle for longest first; mu is held.
func (s *laneSet) trim() {
	if len(s.lanes) <= fewLanes || len(s.lanes) < s.patience {
		return
	}
	idle := make([]agora.Address, 0, len(s.lanes))
	for to, l := range s.lanes {
		if l.using == 0 && !l.idle.IsZero() {
			idle = append(idle, to)
		}
	}
	slices.SortFunc(idle, func(a, b agora.Address) int { return s.lanes[a].idle.Compare(s.lanes[b].idle) })
	for _, to := range idle {
		if len(s.lanes) <= fewLanes*3/4 {
			break
		}
		s.park(to, len(s.lanes) > maxLanes)
	}
	s.patience = len(s.lanes) + fewLanes/4 // so that looking costs little a lane, also where nothing can be put aside
}

// park puts a lane aside, unless something holds it; mu is held.
func (s *laneSet) park(to agora.Address, costly bool) {
	if s.numbers.awaited(to) {
		return
	}
	l := s.lanes[to]
	p, ok := l.Park(costly || to.IsBox()) // whose lane is not used again
	if !ok {
		return
	}
	l.peer.lanes.Add(-1)
	l.aside = true
	delete(s.lanes, to)
	if to.IsBox() { // nothing more comes into it
		return
	}
	delete(s.numbers, to)
	for old := range s.parked {
		if len(s.parked) < maxParked {
			break
		}
		delete(s.parked, old)
		s.forgot = true
	}
	put(&s.parked, to, p)
}

// trim has every sender put aside the lanes that were idle for long. It asks them now and then.
func (r *Relay) trim(now time.Time) {
	if now.Sub(r.trimmed) < laneTrim {
		return
	}
	r.trimmed = now
	r.mu.Lock()
	senders := make([]*laneSet, 0, len(r.senders))
	for s := range r.senders {
		senders = append(senders, s)
	}
	r.mu.Unlock()
	for _, s := range senders {
		s.parkIdle(now.Add(-laneIdle))
	}
}

// parkIdle puts aside the lanes that were idle since a time.
func (s *laneSet) parkIdle(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patience = 0
	for to, l := range s.lanes {
		if l.using == 0 && !l.idle.IsZero() && (l.idle.Before(since) || to.IsBox() && l.idle.Before(since.Add(laneIdle-laneTrim))) {
			s.park(to, false)
		}
	}
	s.trim()
}
