package relay

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
)

// A request of a call names the box for its answer. boxes is what a session's sender knows of those that its agent was
// handed: an agent replies to whoever asked, by the request's id, and the parts of a streamed reply name their stream. Where the agent was asked before
// its session came here, presence lists the calls that are open.

// boxes is guarded by its Sender's mu.
type boxes struct {
	asked    map[streamKey][]*box // by peer and request id; those with one id in the order in which they came
	streams  map[streamKey]*box   // by peer and the stream of the answer
	all      map[string]*box      // by name
	answered []*box               // the oldest first
	listed   bool                 // presence was asked what is open
}

// box is one answer box.
type box struct {
	at      agora.Address
	request string
	streams string // the request's own stream, or what it is called if it is one: nothing tells that of one that presence has listed; empty where it is whole
	cut     bool   // that stream was aborted, or the agent has cancelled it
	stream  string // of the answer, once it has begun
	begun   bool   // an answer was put into it
	ended   bool   // its end was said, though that may not be stored yet
	n       uint64 // number and id of the first part of that
	id      string
	since   time.Time // when it was answered; zero while it was not
}

const (
	answeredFor = time.Minute // how long an answered box is kept in mind: its answer may be said again by who lacks the receipt
	maxBoxes    = 16384       // kept in mind
	boxRoom     = 4 << 20     // bytes of an answer not read by its caller from which on the writer is slowed
	boxLook     = boxRoom / 8 // bytes written between two looks
	boxPause    = time.Second // between two records of an answer that is not read
	boxMost     = 4 * boxRoom // not read, then the answer is given up
)

// Asked notes that the agent was handed the request of a call, whose answer goes into a box. streams is the name of the stream that the request is; empty where it is whole.
func (s *Sender) Asked(peer agora.Address, request, name, streams string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askedFor(peer, request, name, streams)
}

// askedFor is Asked; mu is held.
func (s *Sender) askedFor(peer agora.Address, request, name, streams string) {
	b := s.known()
	if b.all[name] != nil {
		return
	}
	b.tidy()
	x := &box{at: agora.ToBox(peer.Tenant, name, peer.Agent), request: request, streams: streams}
	b.all[name] = x
	k := streamKey{peer, request}
	b.asked[k] = append(b.asked[k], x)
}

// known returns the boxes, making room for them first; mu is held.
func (s *Sender) known() *boxes {
	if s.boxes == nil {
		s.boxes = &boxes{asked: map[streamKey][]*box{}, streams: map[streamKey]*box{}, all: map[string]*box{}}
	}
	return s.boxes
}

// tidy forgets boxes that were answered long ago, and some where they are too many.
func (b *boxes) tidy() {
	for len(b.answered) > 0 && (time.Since(b.answered[0].since) > answeredFor || len(b.all) >= maxBoxes) {
		b.drop(b.answered[0])
	}
	for _, x := range b.all {
		if len(b.all) < maxBoxes {
			break
		}
		b.listed = false // presence still knows of it
		b.drop(x)
	}
}

func (b *boxes) drop(x *box) {
	peer := x.at.Peer()
	delete(b.all, x.at.Space)
	k := streamKey{peer, x.request}
	b.asked[k] = without(b.asked[k], x)
	if len(b.asked[k]) == 0 {
		delete(b.asked, k)
	}
	if k := (streamKey{peer, x.stream}); b.streams[k] == x {
		delete(b.streams, k)
	}
	b.answered = without(b.answered, x)
}

func without(all []*box, x *box) []*box {
	for i := range all {
		if all[i] == x {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}

// resume goes on with an answer that an earlier holder of the session has begun; mu is held.
func (s *Sender) resume(to agora.Address, stream string) {
	b := s.known()
	x := b.all[to.Space]
	if x == nil {
		x = &box{at: to}
		b.all[to.Space] = x
	}
	x.begun, x.stream = true, stream
	b.streams[streamKey{to.Peer(), stream}] = x
}

// Cut notes that a stream to the agent has been given up by its sender, or is cancelled by the agent: where it is the request of the call whose answer goes into a box, the
// agent need not be told that nobody waits for that answer. Another call may have a stream of the same name open.
func (s *Sender) Cut(name, stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes == nil {
		return
	}
	if x := s.boxes.all[name]; x != nil && x.streams == stream {
		x.cut = true
	}
}

// streamed returns the box of the call whose request is an open stream of a peer's, the youngest one of that name; nil for none.
func (b *boxes) streamed(peer agora.Address, stream string) *box {
	for _, x := range slices.Backward(b.asked[streamKey{peer, stream}]) {
		if x.streams == stream && !x.cut {
			return x
		}
	}
	return nil
}

// Route returns where a message of the agent's goes: the answer of a call into its box, as does that the agent cancels a stream which is its request; everything else where it is addressed. It takes a round trip to
// presence when the agent replies for the first time to something that it was not handed here, or cancels that.
func (s *Sender) Route(ctx context.Context, m *agora.Message) agora.Address {
	if m.Kind != agora.Reply && m.Part != agora.Cancel || m.To.IsSpace() {
		return m.To
	}
	s.mu.Lock()
	to, found := s.route(m)
	asks := m.Part <= agora.Start || m.Part == agora.Cancel && s.cfg.Claim.Resumed
	ask := !found && asks && !(s.boxes != nil && s.boxes.listed)
	s.mu.Unlock()
	if !ask {
		return to
	}
	s.list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	to, _ = s.route(m)
	return to
}

// list asks presence for the calls that are open.
func (s *Sender) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.relay.cfg.Answer)
	defer cancel()
	calls, whole, err := s.relay.cfg.Presence.Calls.To(ctx, s.cfg.Claim.Tenant, s.cfg.Claim.Agent)
	if err != nil {
		s.relay.cfg.Log.Debug("open calls could not be read", "agent", s.cfg.Claim.Agent, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known().listed = whole
	for _, c := range calls {
		s.askedFor(agora.ToAgent(c.Tenant, c.From), c.Request, c.Box, c.Request)
	}
}

// route is Route by what is known here; mu is held.
func (s *Sender) route(m *agora.Message) (to agora.Address, found bool) {
	if s.boxes == nil {
		return m.To, false
	}
	if m.Part != agora.Whole {
		x := s.boxes.streams[streamKey{m.To, m.Stream}]
		if x != nil && (m.Part != agora.Start || !x.ended && x.since.IsZero() || x.takes(m)) { // else another answer begins under a name that was used before
			x.ended = x.ended || m.Part.Ends()
			return x.at, true
		}
	}
	if m.Part == agora.Cancel {
		if x := s.boxes.streamed(m.To, m.Stream); x != nil {
			return x.at, true
		}
	}
	if m.Part > agora.Start {
		return m.To, false
	}
	x, found := s.boxes.answerFor(m)
	if x == nil {
		return m.To, found
	}
	x.begun, x.ended, x.n, x.id, x.stream = true, false, m.N, m.ID, ""
	if m.Part == agora.Start {
		x.stream = m.Stream
		s.boxes.streams[streamKey{m.To, m.Stream}] = x
	}
	return x.at, true
}

// answerFor returns the box that a reply answers: the first one of its request that has no answer, or has this one. A reply that names no request is that to the
// one that its stream is called by, which it then names; else to the only open one of its peer. found tells that the request is known.
func (b *boxes) answerFor(m *agora.Message) (x *box, found bool) {
	name := cmp.Or(m.Meta.Parent, m.Stream)
	of := b.asked[streamKey{m.To, name}]
	for _, x := range of {
		if x.takes(m) {
			m.Meta.Parent = name
			return x, true
		}
	}
	if m.Meta.Parent == "" {
		return b.only(m)
	}
	return nil, len(of) > 0
}

func (b *boxes) only(m *agora.Message) (*box, bool) {
	var only *box
	for _, x := range b.all {
		if x.at.Peer() != m.To || !x.takes(m) {
			continue
		}
		if only != nil {
			return nil, true
		}
		only = x
	}
	return only, only != nil
}

// takes tells whether a reply may be the box's answer: it has none yet, or this one, said again. Nobody answers a request whose stream was given up: a later one may have its name.
func (x *box) takes(m *agora.Message) bool {
	return !x.begun && !x.cut || m.N > 0 && m.N == x.n || m.ID != "" && m.ID == x.id
}

// boxed notes what became of a part of an answer.
func (s *Sender) boxed(to agora.Address, m agora.Part, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes == nil {
		return
	}
	x := s.boxes.all[to.Space]
	switch {
	case x == nil || !x.since.IsZero():
	case err != nil && m <= agora.Start && agora.AsError(err).Code != agora.StreamAborted:
		x.begun = false // it may be answered anew
	case err == nil && (m == agora.Whole || m.Ends()):
		x.since = time.Now()
		s.boxes.answered = append(s.boxes.answered, x)
	}
}

// NotAsked says that nobody waits for the answer that goes into a box any more: what still comes of it goes to the mailbox of who asked. It
// returns the stream of the answer where that has begun and not ended, and whether the agent is to be told: not when it has answered.
func (s *Sender) NotAsked(peer agora.Address, name string) (to agora.Address, stream string, open, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = agora.ToBox(peer.Tenant, name, peer.Agent)
	b := s.known()
	x := b.all[name]
	if x == nil { // it was asked before its session came here
		b.tidy()
		x = &box{at: to}
		b.all[name] = x
	}
	if !x.since.IsZero() {
		return to, "", false, false
	}
	open = x.begun && x.stream != "" && s.open[streamKey{x.at, x.stream}] != nil
	stream = x.stream // of which is dropped in silence what its agent still says
	if !open {
		stream = ""
		x.begun, x.n, x.id = true, 0, "" // it takes nothing more, though presence may list it still
	}
	x.since = time.Now()
	b.answered = append(b.answered, x)
	return x.at, stream, open, !x.cut
}

// Box returns the address under which a stream to a peer is open: that of a box where it is the answer of a call.
func (s *Sender) Box(peer agora.Address, stream string) agora.Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes != nil {
		if x := s.boxes.streams[streamKey{peer, stream}]; x != nil {
			return x.at
		}
	}
	return peer
}

// inTurn waits until what was numbered before a message, to the same peer, is settled where it went into another lane: a receipt
// speaks of all numbers up to its own, whatever lane they took.
func (s *Sender) inTurn(ctx context.Context, m *agora.Message) error {
	if m.N == 0 || m.To.IsSpace() || !guard.Turns {
		return nil
	}
	s.mu.Lock()
	if s.boxes == nil {
		s.mu.Unlock()
		return nil
	}
	k := s.counted(m.To.Peer())
	before := k.lane
	if before == (agora.Address{}) {
		before = m.To.Peer()
	}
	k.lane = m.To
	l := s.lanes[before]
	s.mu.Unlock()
	if before == m.To || l == nil {
		return nil
	}
	if err := l.Flush(ctx); err != nil && ctx.Err() != nil {
		return agora.AsError(ctx.Err())
	}
	return s.Follows(m.To.Peer(), m.N)
}

// turns tells whether a numbered part goes into another lane than the number before it; mu is held.
func (s *Sender) turns(to agora.Address, n uint64) bool {
	if s.boxes == nil || n == 0 || to.IsSpace() {
		return false
	}
	k := s.numbers[to.Peer()]
	return k == nil || k.lane != to
}

// heldBack notes that a number was refused for the moment in its lane: the lane holds back what comes behind it there, this what goes into others.
func (s *Sender) heldBack(to agora.Address, res broker.Result) {
	if res.N == 0 || to.IsSpace() || res.Err == nil {
		return
	}
	s.mu.Lock()
	mixed := s.boxes != nil
	s.mu.Unlock()
	if mixed {
		s.Refused(to.Peer(), res.N, res.Err)
	}
}

// measureBox compares what was put into a box with what its callers have taken.
func (p *peer) measureBox(ctx context.Context) {
	sent := p.sent.Load()
	taken, waits, err := p.relay.cfg.Taken(ctx, p.to)
	if err != nil {
		return // what was known stays
	}
	p.mu.Lock()
	if p.before == 0 && taken > sent { // what was put there before the session came here
		p.before = taken - sent
	}
	unread := sent + p.before - taken
	p.mu.Unlock()
	if !waits {
		unread = 0 // nobody will read: the agent is told
	}
	p.full.Store(unread >= boxRoom)
	p.over.Store(unread >= boxMost)
	p.seen.Store(sent)
}
