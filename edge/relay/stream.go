package relay

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

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
	state    streamState
	pieces   bool // of one frame: see Options
}

// streamSet is the streams of one session that are open or were recently, and its requests with a deadline. Its methods
// may be called at the same time.
type streamSet struct {
	laneSet
	timers sync.WaitGroup // deadlines that are being told

	// The lock of the laneSet guards the fields below.
	open  map[streamKey]*stream
	last  *stream               // of open, looked up last; nil for none
	owed  map[streamKey]*stream // not open to the agent, and in presence: their ends are not in the log yet, or they are about to begin
	past  pastStreams
	asked map[streamKey]*stream // requests that have no reply yet; the key's stream is the request's id
}

// find returns an open stream; mu is held. Most often it is the one that was found last.
func (s *streamSet) find(k *streamKey) *stream {
	if s.last == nil || s.last.key != *k {
		s.last = s.open[*k]
	}
	return s.last
}

// Lanes returns the lanes that the session has used, with their open streams,
// as presence is to have them.
func (s *streamSet) Lanes() []presence.Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.addresses()
	for _, streams := range []map[streamKey]*stream{s.open, s.owed} {
		for k, st := range streams {
			open[k.to] = append(open[k.to], presence.OpenStream{
				Stream: k.stream, Kind: st.kind, Indexed: st.indexed, Deadline: st.deadline, Receipts: st.receipts,
			})
		}
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

// dropped reports whether a part belongs to a stream that was answered for already; see [pastStreams.drops].
func (s *streamSet) dropped(k streamKey, part agora.Part, n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past.drops(k, part, n)
}

// begins notes that presence learns of a stream before its start goes into a lane: until then it is owed, so that
// presence hears of it again should it lose everything just now, and forgets it where nothing comes of it.
func (s *streamSet) begins(k streamKey, o *presence.OpenStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[k]; st != nil && st.state != streamEnding {
		return
	}
	put(&s.owed, k, &stream{key: k, kind: o.Kind, indexed: o.Indexed, receipts: o.Receipts, deadline: o.Deadline, state: streamBegins})
	s.relay.streamOwed(s)
}

// began says what became of a start on its way into a lane.
func (s *streamSet) began(k streamKey, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.owed[k]; st != nil {
		st.hears(startLost)
	}
}

// end forgets a stream, as what became of its last part says: here and, with the next Tick, in presence, unless another
// of that name has begun meanwhile. One of which a part was refused for the moment stays in presence until the log has
// its end.
func (s *streamSet) end(k streamKey, st *stream, err error) {
	owed := err != nil && agora.AsError(err).Code == agora.Unavailable
	s.mu.Lock()
	current := st != nil && s.open[k] == st
	if current {
		s.shuts(k)
	}
	if st != nil {
		stopTimer(st)
	}
	another := s.owed[k] != nil // that begins
	if current && owed && !another {
		st.hears(endUnsure)
		put(&s.owed, k, st)
	}
	s.mu.Unlock()
	switch {
	case !current || another:
	case owed:
		s.relay.streamOwed(s)
	default:
		s.relay.streamClosed(*s.cfg.Claim, k.to, k.stream)
	}
}

// owner is as whose the open streams count.
func (s *streamSet) owner() admission.Owner {
	return admission.Owner{Tenant: s.cfg.Claim.Tenant, Principal: s.cfg.Principal, Agent: s.cfg.Claim.Agent}
}

// opens adds a stream to those that are open, and counts it until shuts, or until the sender closes; mu is held.
func (s *streamSet) opens(k streamKey, st *stream) {
	if s.open[k] == nil && !s.closed {
		s.relay.cfg.Usage.Add(admission.Streams, s.owner(), 1)
	}
	put(&s.open, k, st)
	s.last = nil
}

// shuts takes one out of the streams that are open; mu is held.
func (s *streamSet) shuts(k streamKey) {
	delete(s.open, k)
	s.uncount(1)
	s.last = nil
}

// uncount counts so many open streams no more, which a closed sender does not count; mu is held.
func (s *streamSet) uncount(n int) {
	if n > 0 && !s.closed {
		s.relay.cfg.Usage.Give(admission.Streams, s.owner(), int64(n))
	}
}

// reserve counts a stream that is to open, until unreserve: it counts by itself once it has. RATE_LIMITED where as many
// are open as may be. Those that an earlier holder left and the log says are over do not count: their agent need not
// say more of them.
func (s *streamSet) reserve() error {
	err := s.relay.cfg.Usage.Take(admission.Streams, s.owner(), 1)
	if err == nil || !s.shutOver() {
		return err
	}
	return s.relay.cfg.Usage.Take(admission.Streams, s.owner(), 1)
}

// forGood returns the error of a start as one that uses up the number it has: waited for, it would hold up the ends of
// other streams, which alone make room.
func forGood(n uint64, err error) error {
	e := *agora.AsError(err)
	if n > 0 {
		e.RetryAfter = 0
	}
	return &e
}

func (s *streamSet) unreserve() { s.relay.cfg.Usage.Give(admission.Streams, s.owner(), 1) }

// shutOver takes out the streams of earlier holders that are over by the word of the log, and reports whether there are
// any.
func (s *streamSet) shutOver() (some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, st := range s.open {
		if st.lane != nil || s.lanes[k.to] == nil || s.mayBeOpen(k) {
			continue
		}
		s.shuts(k)
		stopTimer(st)
		s.relay.streamClosed(*s.cfg.Claim, k.to, k.stream)
		some = true
	}
	return some
}

// cancelled closes a stream that its receiver has cancelled: what the agent
// still sends of it is dropped in silence. It returns false when the stream
// had come to its end already: then the cancel is nobody's news.
func (s *streamSet) cancelled(to agora.Address, name string) bool {
	k := streamKey{to, name}
	s.mu.Lock()
	st, ended := s.open[k], s.past.hasEnded(k)
	silences := st != nil && s.past.silence(k, 0)
	s.mu.Unlock()
	if st == nil {
		return !ended
	}
	// The receiver drops it; the log needs it, so that the stream is closed there too.
	m := agora.Message{Kind: st.kind, Part: agora.Cancel, Stream: name, From: s.cfg.Claim.Agent, To: to}
	s.put(to, m, func(res broker.Result) {
		if silences && res.Err != nil && agora.AsError(res.Err).Code == agora.Unavailable {
			s.speaks(k)
		}
		s.end(k, st, res.Err)
	})
	return true
}

// speaks says that a cancel was refused for the moment by which a stream was to be silent: it has ended nothing. What
// was refused with it, and comes again, is answered as the lane has it.
func (s *streamSet) speaks(k streamKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.speak(k)
}

// AbortOpen ends every open stream permanently: the agent has left. It returns
// when the receivers' logs say so, or with the first error.
func (s *streamSet) AbortOpen(ctx context.Context) error {
	s.mu.Lock()
	open := maps.Clone(s.open)
	for k, st := range s.owed {
		put(&open, k, st)
	}
	s.mu.Unlock()
	for k, st := range open {
		s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
	}
	return s.Flush(ctx)
}

// Review ends every open stream that may not go on, and tells the agent so; what still comes of them is dropped. The
// last piece of a frame tells it of itself.
func (s *streamSet) Review(mayGoOn func(agora.Address, agora.Kind) error, tell func(to agora.Address, name string, err error)) {
	s.mu.Lock()
	open := maps.Clone(s.open)
	s.mu.Unlock()
	for k, st := range open {
		if err := mayGoOn(k.to, st.kind); err != nil {
			s.broken(k, 0, err)
			if !st.pieces {
				tell(k.to, k.stream, err)
			}
		}
	}
}

// abort puts the cluster's own end of a stream into its lane.
func (s *streamSet) abort(k streamKey, st *stream, code agora.Code, done func(broker.Result)) {
	m := agora.AbortBody{Code: code}.Message()
	m.Kind, m.Stream, m.From, m.To = st.kind, k.stream, s.cfg.Claim.Agent, k.to
	s.put(k.to, m, func(res broker.Result) {
		if res.Err == nil || agora.AsError(res.Err).Code == agora.Unavailable { // then the lane, or who has it next, owes the receiver an end
			s.end(k, st, res.Err)
		}
		done(res)
	})
}

func stopTimer(st *stream) {
	if st.timer != nil {
		st.timer.Stop()
	}
}

// streamState is where a stream of a sender stands.
type streamState uint8

const (
	streamRunning streamState = iota // open: its start is in its lane, here or by an earlier holder's word to presence
	streamAwaited                    // open by an earlier holder's word: its start was refused for the moment and comes again under its number, and all of its parts with it
	streamEnding                     // open: its last part is on its way, and a start begins another stream
	streamBegins                     // not open: presence is told, and its start is on its way into a lane
	streamOwed                       // not open: its start was refused, or its last part; presence knows it until the log has no use for its end
	streamStates
)

// streamEvent is what becomes of a part of a stream.
type streamEvent uint8

const (
	startComesAgain streamEvent = iota // its start was refused for the moment before it came into its lane
	startLost                          // its start was refused before it came into its lane, and does not come again
	startSaid                          // its start goes into its lane
	endSaid                            // its last part goes into its lane
	endUnsure                          // its last part, or its start, was refused for the moment in its lane: the log may need its end
	streamEvents
)

// streamNext is the life of a stream: what each event makes of it. One whose end is stored is in no state: nothing
// knows it.
var streamNext = [streamStates][streamEvents]streamState{
	//             comes again    start lost     start said     end said      end unsure
	streamRunning: {streamAwaited, streamRunning, streamRunning, streamEnding, streamOwed},
	streamAwaited: {streamAwaited, streamRunning, streamRunning, streamEnding, streamOwed},
	streamEnding:  {streamEnding, streamEnding, streamEnding, streamEnding, streamOwed},
	streamBegins:  {streamOwed, streamOwed, streamBegins, streamBegins, streamOwed},
	streamOwed:    {streamOwed, streamOwed, streamOwed, streamOwed, streamOwed},
}

func (s streamState) String() string {
	return [...]string{"running", "awaited", "ending", "begins", "owed"}[s]
}

// hears moves a stream on by an event.
func (st *stream) hears(e streamEvent) { st.state = streamNext[st.state][e] }
