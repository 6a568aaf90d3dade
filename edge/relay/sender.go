package relay

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// SenderConfig names the session that sends.
type SenderConfig struct {
	Claim   *presence.Claim // which does not change
	Dirty   uint64          // the highest epoch that ended without handing over
	Deposed func()          // the claim was taken; called at most once a lane, never blocking
	// Asker is told of what is sent without an asker of its own, and of a deadline that has passed where the other end was told: of a stream, or of a
	// request by the id of its frame.
	Asker Asker
}

// Sender is what one session sends, to whomever: a lane each, one window for
// all. Its methods may be called at the same time; the order of messages to
// one addressee is that of the calls to Send.
type Sender struct {
	relay  *Relay
	cfg    SenderConfig
	window window
	timers sync.WaitGroup // deadlines that are being told

	mu        sync.Mutex // guards the fields below; its maps are made when something comes into them
	lanes     map[agora.Address]*lane
	used      map[agora.Address][]presence.OpenStream // lanes of earlier holders, not yet used here
	parked    map[agora.Address]broker.Parked         // lanes put aside
	patience  int                                     // lanes open before trim looks again
	forgot    bool                                    // some of those are not even known any more: any lane may have been used
	open      map[streamKey]*stream
	last      *stream // of open, looked up last; nil for none
	over      fifo    // streams that were refused or cancelled: their later parts are dropped in silence
	ended     fifo    // streams that came to their normal end
	concluded fifo    // streams that an answer has ended, with the answer's id
	unopened  *fifo   // streams that a part was to open that was refused, with its id; nil while there was none
	numbers   map[agora.Address]*numbers
	asked     map[streamKey]*stream // requests with a deadline that have no reply yet; the key's stream is the request's id
	boxes     *boxes                // of calls that the agent was asked; nil while there were none
	closed    bool
}

type streamKey struct {
	to     agora.Address
	stream string
}

// stream is one that was started and has not ended, or a request that waits.
type stream struct {
	key      streamKey
	lane     *lane               // that its parts go into; nil until one did here
	told     func(broker.Result) // settles a chunk of it of which nothing else is kept; nil with lane
	kind     agora.Kind
	indexed  bool
	receipts agora.Receipts
	frame    string // id of the frame that asked
	deadline time.Time
	timer    *time.Timer
	ended    bool // its last part is on its way: a start begins another stream
	pieces   bool // of one frame: see Options
}

// lane is a broker lane and its addressee.
type lane struct {
	*broker.Lane
	peer   *peer
	paused bool      // Pressed was told; guarded by the Sender's mu, as the next three
	using  int       // messages on their way into it
	idle   time.Time // since when none is
	aside  bool      // it was put aside: another one goes on in its place
	last   uint64    // stream sequence of the last stored record; used on the broker's goroutine alone
}

// Sender returns the sender of a session, and the lanes that earlier holders of that have used. Close it when the session is over here.
func (r *Relay) Sender(cfg SenderConfig, lanes []presence.Lane) *Sender {
	s := &Sender{
		relay: r, cfg: cfg, window: window{size: r.cfg.InFlight},
	}
	s.mu.Lock()
	for _, l := range lanes {
		s.inherit(l)
	}
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.senders[s] = struct{}{}
	return s
}

// put puts a value into a map, which it makes where there is none: most agents never send.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// inherit takes over what an earlier holder of the session had under way.
func (s *Sender) inherit(l presence.Lane) {
	put(&s.used, l.To, nil)
	for _, o := range l.Open {
		k := streamKey{l.To, o.Stream}
		st := &stream{key: k, kind: o.Kind, indexed: o.Indexed, receipts: o.Receipts}
		if id, ok := requestID(o.Stream); ok {
			k.stream = id
			put(&s.asked, k, st)
			s.expire(k, st, o.Deadline, true)
			continue
		}
		s.used[l.To] = append(s.used[l.To], o)
		put(&s.open, k, st)
		s.expire(k, st, o.Deadline, false)
		if l.To.IsBox() {
			s.resume(l.To, o.Stream)
		}
	}
}

// Send takes a message to an agent or a space. It blocks while the window is
// full and, when a lane or a stream begins, for a round trip to presence. An
// error is the answer to the frame and nobody is told more; else the asker is
// told once, unless the message
// belongs to a stream that was refused or cancelled before: that is dropped
// without a word. Of a chunk that has neither an asker of its own nor an id, and of which no receipt tells by its index, nothing is kept.
func (s *Sender) Send(ctx context.Context, m agora.Message, o Options) error {
	k := streamKey{m.To, m.Stream}
	l, st, told := s.goesOn(&k, &m)
	if l == nil {
		if m.Part != agora.Cancel && s.dropped(k, m.Part) {
			s.pass(m.To, m.N)
			if o.Answered {
				return agora.Errorf(agora.StreamNotFound, "stream %q to %q is over", m.Stream, m.To.Peer().Name())
			}
			return nil
		}
		var err error
		if l, err = s.prepare(ctx, &m, o); err != nil {
			if !o.Piece {
				s.refuse(k, m.Part, m.N, err)
			}
			s.unasked(k.to, o.Request, &m)
			return err
		}
	}
	defer s.release(l)
	if err := s.inTurn(ctx, &m); err != nil {
		return err
	}
	size := len(m.Body) + overhead
	if err := s.window.take(ctx, size); err != nil {
		return agora.AsError(err)
	}
	if told == nil || o.keeps(&m) {
		told = s.keep(k, &m, o, l, st, size).done
	}
	l.Put(m, told)
	return nil
}

// keep returns what is kept of a message that goes into a lane until its asker is told.
func (s *Sender) keep(k streamKey, m *agora.Message, o Options, l *lane, st *stream, size int) *pendingSend {
	p := s.relay.pending.get()
	p.sender, p.asker, p.lane, p.key, p.part, p.n, p.size = s, o.Asker, l, k, m.Part, m.N, size
	p.index, p.indexed, p.frame, p.receipts = m.Index, m.Indexed, o.Frame, o.Receipts
	if p.asker == nil {
		p.asker = s.cfg.Asker
	}
	if p.stream = st; st == nil {
		p.stream, p.first = s.track(k, m, o, l)
	}
	p.awaits, p.request, p.piece = m.Part == agora.Whole && !m.Meta.Deadline.IsZero(), o.Request, o.Piece
	return p
}

// overhead is what a message costs beside its body.
const overhead = 256

// Options are what the sender wants of one message.
type Options struct {
	Receipts agora.Receipts // tiers it asked for
	Frame    string         // id of the frame
	Request  string         // the request's own id, where a deadline is to be watched for its reply
	Asker    Asker          // who is told what became of it; that of the Sender if nil
	Answered bool           // the asker waits: what is dropped is told as STREAM_NOT_FOUND
	Piece    bool           // the frame was cut into the parts of a stream: the last of them alone answers for it, whatever becomes of the others
}

// keeps reports whether the asker of a chunk is told more than its number.
func (o *Options) keeps(m *agora.Message) bool {
	return o.Asker != nil || o.Frame != "" || m.N == 0 && o.Receipts&agora.Stored != 0
}

// prepare returns the message's lane, once the addressee is known to be there
// and presence knows of the lane and the stream. The caller releases it.
func (s *Sender) prepare(ctx context.Context, m *agora.Message, o Options) (*lane, error) {
	begins := m.Part == agora.Start || m.Part == agora.Whole
	s.mu.Lock()
	l := s.lanes[m.To]
	used := s.mayHaveUsed(m.To)
	_, parked := s.parked[m.To]
	st := s.open[streamKey{m.To, m.Stream}]
	streams := len(s.open)
	s.mu.Unlock()
	if !begins && m.Kind != agora.Control && l == nil && !used { // a cancel may be the first word to a stream's sender
		return nil, agora.Errorf(agora.StreamNotFound, "stream %q to %q was never started", m.Stream, m.To.Peer().Name())
	}
	if begins && s.relay.away(m, l) {
		return nil, logAway()
	}
	if m.Part == agora.Start && st == nil && streams >= s.relay.cfg.Streams() {
		return nil, agora.Errorf(agora.RateLimited, "%d streams are open: more are not allowed", streams)
	}
	if st != nil && !begins {
		m.Meta.Receipts |= st.receipts &^ agora.Stored
	}
	if begins {
		if err := s.reach(ctx, m, l); err != nil {
			return nil, err
		}
	}
	if l == nil && !parked && !(m.To.IsBox() && (m.Part == agora.Whole || m.Kind == agora.Control)) || begins && (m.Part == agora.Start || !m.Meta.Deadline.IsZero()) {
		if err := s.note(ctx, m, o); err != nil {
			return nil, err
		}
	}
	l = s.lane(m.To)
	if err := s.pace(l, m); err != nil {
		s.release(l)
		return nil, err
	}
	return l, nil
}

// away tells whether a message is to be refused at once, as the log has been away for longer than an election takes. What is
// numbered is taken in all the same: whoever numbers sends again what is refused, and nothing
// behind it could be taken before, not even the rest of streams that still have a chance.
func (r *Relay) away(m *agora.Message, l *lane) bool {
	if m.N > 0 {
		return false
	}
	if l != nil {
		return l.Stuck()
	}
	return r.cfg.Broker.Lost()
}

// reach asks whether the addressee can be written to.
func (s *Sender) reach(ctx context.Context, m *agora.Message, l *lane) error {
	if m.To.IsSpace() || m.To.IsBox() || m.Kind == agora.Control || m.Kind == agora.Receipt {
		return nil // members only publish; answers go to whoever wrote first
	}
	if l != nil {
		return l.peer.lookup(ctx)
	}
	return s.relay.peer(m.To).lookup(ctx)
}

// note tells presence of the lane and of the stream or request that begins in it, so that
// whoever ends the session can end them.
func (s *Sender) note(ctx context.Context, m *agora.Message, o Options) error {
	var open *presence.OpenStream
	switch {
	case m.Part == agora.Start:
		open = &presence.OpenStream{
			Stream: m.Stream, Kind: m.Kind, Indexed: m.Indexed || m.N > 0, Deadline: m.Meta.Deadline, Receipts: o.Receipts,
		}
	case m.Part == agora.Whole && !m.Meta.Deadline.IsZero():
		open = &presence.OpenStream{Stream: requestStream(o.Request), Kind: m.Kind, Deadline: m.Meta.Deadline}
	}
	ctx, cancel := context.WithTimeout(ctx, s.relay.cfg.Answer)
	defer cancel()
	err := s.relay.cfg.Presence.Lanes.Use(ctx, *s.cfg.Claim, m.To, open)
	if err != nil {
		return agora.AsError(err)
	}
	if m.Part == agora.Whole && open != nil {
		s.await(m, o)
	}
	return nil
}

// pace slows streams to an addressee whose unread part is too large, and refuses one-shots. Streams that the addressee alone of
// all it is sent does not keep up with are slowed, too.
func (s *Sender) pace(l *lane, m *agora.Message) error {
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

// lane returns the lane to an address, making it where it is missing. The caller releases it.
func (s *Sender) lane(to agora.Address) *lane {
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
func (s *Sender) newLane(to agora.Address, p *peer) *lane {
	cfg := broker.LaneConfig{
		From: s.cfg.Claim.Agent, Session: s.cfg.Claim.Session, Epoch: s.cfg.Claim.Epoch,
		// A resumed session may have used lanes that presence has lost the word of.
		To: to, Used: s.mayHaveUsed(to) || s.cfg.Claim.Resumed, Dirty: s.cfg.Dirty, Open: openStreams(s.used[to]),
		Valid: s.relay.cfg.Valid, Deposed: s.cfg.Deposed,
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

// Lanes returns the lanes that the session has used, with their open streams,
// as presence is to have them.
func (s *Sender) Lanes() []presence.Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[agora.Address][]presence.OpenStream{}
	for to := range s.used {
		open[to] = nil
	}
	for to := range s.lanes {
		if !to.IsBox() { // of those only answers that are open count
			open[to] = nil
		}
	}
	for to := range s.parked {
		open[to] = nil
	}
	for k, st := range s.open {
		open[k.to] = append(open[k.to], presence.OpenStream{
			Stream: k.stream, Kind: st.kind, Indexed: st.indexed, Deadline: st.deadline, Receipts: st.receipts,
		})
	}
	for k, st := range s.asked {
		open[k.to] = append(open[k.to], presence.OpenStream{Stream: requestStream(k.stream), Kind: st.kind, Deadline: st.deadline})
	}
	lanes := make([]presence.Lane, 0, len(open))
	for to, streams := range open {
		lanes = append(lanes, presence.Lane{To: to, Open: streams})
	}
	return lanes
}

// Flush returns nil once nothing is under way on any lane and nothing was
// given up: a clean hand-over. Nothing may be sent meanwhile.
func (s *Sender) Flush(ctx context.Context) error {
	var first error
	for _, l := range s.all() {
		if err := l.Flush(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *Sender) all() []*lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes := make([]*lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		lanes = append(lanes, l)
	}
	return lanes
}

// Held returns the bytes that are under way: gathered, or sent and not stored yet. It does not block.
func (s *Sender) Held() int { return s.window.held() }

// Close ends every lane and deadline here; what is not stored is answered
// with UNAVAILABLE. The session may go on elsewhere.
func (s *Sender) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	for _, st := range s.open {
		stopTimer(st)
	}
	for _, st := range s.asked {
		stopTimer(st)
	}
	s.mu.Unlock()
	if closed {
		return
	}
	s.relay.mu.Lock()
	delete(s.relay.senders, s)
	s.relay.mu.Unlock()
	for _, l := range s.all() {
		l.Close()
		l.peer.lanes.Add(-1)
	}
	s.timers.Wait()
}
