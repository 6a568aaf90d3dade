package relay

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// dropped tells whether a part belongs to a stream that was answered for
// already. A new start makes it a stream again; an end ends the silence.
func (s *Sender) dropped(k streamKey, part agora.Part) bool {
	if part == agora.Whole {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over.has(k) {
		return false
	}
	if part == agora.Start || part.Ends() {
		s.over.remove(k)
	}
	return part != agora.Start
}

// refuse remembers that a stream was answered for. A numbered part that was refused for the moment comes again under its
// number, and is told then that the stream is over: without receipt or error its sender would wait for ever. What presence
// refused because it does not know the claim is no answer yet: it is told of the claim, and the part is tried once more.
func (s *Sender) refuse(k streamKey, part agora.Part, n uint64, err error) {
	if part == agora.Whole || part.Ends() || errors.Is(err, presence.ErrDeposed) || n > 0 && agora.AsError(err).Code == agora.Unavailable {
		return
	}
	s.silence(k)
}

// Unstarted notes that a stream's start, or a part of one that never started, was refused before it came here: that is its one
// answer, and its parts are dropped.
func (s *Sender) Unstarted(to agora.Address, name string, n uint64, err error) {
	s.refuse(streamKey{to, name}, agora.Start, n, err)
}

// AnsweredFor tells whether a part is of a stream that was refused and needs no other answer; a number that it has is used up then.
func (s *Sender) AnsweredFor(to agora.Address, name string, part agora.Part, n uint64) bool {
	if !s.dropped(streamKey{to, name}, part) {
		return false
	}
	s.pass(to, n)
	return true
}

// silence has what still comes of a stream dropped.
func (s *Sender) silence(k streamKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over.add(k)
}

// goesOn returns the stream that a chunk belongs to, and its lane, where there is
// nothing to ask before the chunk may go into it: nearly all messages are
// such chunks. told settles it. Else it returns nil. The caller releases the lane.
func (s *Sender) goesOn(k *streamKey, m *agora.Message) (l *lane, st *stream, told func(broker.Result)) {
	if m.Part != agora.Chunk {
		return nil, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.find(k)
	if st == nil || st.lane == nil || st.lane.aside || st.lane.paused || st.lane.peer.full.Load() || st.lane.peer.slows(s.cfg.Claim.Agent) || s.over.has(*k) || s.turns(k.to, m.N) {
		return nil, nil, nil
	}
	m.Meta.Receipts |= st.receipts &^ agora.Stored
	st.lane.using++
	return st.lane, st, st.told
}

// uses has the parts of a stream go into a lane; mu is held.
func (s *Sender) uses(st *stream, l *lane) {
	if st.lane != l {
		st.lane, st.told = l, func(res broker.Result) {
			p := pendingSend{sender: s, asker: s.cfg.Asker, lane: l, key: st.key, stream: st, part: agora.Chunk, n: res.N, size: res.Size + overhead}
			p.complete(res)
		}
	}
}

// find returns an open stream; mu is held. Most often it is the one that was found last.
func (s *Sender) find(k *streamKey) *stream {
	if s.last == nil || s.last.key != *k {
		s.last = s.open[*k]
	}
	return s.last
}

// track returns the stream that a part belongs to, nil where none is open.
// first tells that the part begins it: a start may be one that is sent again.
func (s *Sender) track(k streamKey, m *agora.Message, o Options, l *lane) (st *stream, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.open[k]
	if st != nil {
		s.uses(st, l)
	}
	switch {
	case m.Kind == agora.Control:
		return nil, false
	case m.Part == agora.Start && (st == nil || st.ended):
		st = &stream{key: k, kind: m.Kind, indexed: m.Indexed || m.N > 0, receipts: o.Receipts, frame: o.Frame, pieces: o.Piece}
		s.uses(st, l)
		put(&s.open, k, st)
		s.last = nil
		s.expire(k, st, m.Meta.Deadline, false)
		return st, true
	case m.Part.Ends() && st != nil:
		st.ended = true
	}
	if m.Part == agora.Cancel {
		s.over.add(k)
	}
	return st, false
}

// answered tells whether the outcome of a part is no news: it is refused for
// good, and so was one before it. Many may be under way when the first is. A cancel is always answered: nothing else tells
// its sender that the stream is over.
func (s *Sender) answered(k streamKey, part agora.Part, err error) bool {
	if err == nil || part == agora.Start || part == agora.Cancel || agora.AsError(err).Code == agora.Unavailable {
		return false
	}
	return s.dropped(k, part)
}

// settle takes note of what became of a message.
func (s *Sender) settle(p *pendingSend, res broker.Result) {
	l, k, st := p.lane, p.key, p.stream
	if res.Err == nil && !res.Again && res.Seq>>agora.SeqShift != l.last {
		l.last = res.Seq >> agora.SeqShift
		l.peer.stored()
	}
	if res.Err == nil && p.n > 0 {
		s.numbered(k.to.Peer(), p.n)
	}
	failed := res.Err != nil
	if failed && agora.AsError(res.Err).Code == agora.Unavailable {
		s.heldBack(k.to, res)
	}
	if k.to.IsBox() && (p.part != agora.Cancel || st != nil) { // else it is the request's stream that is cancelled
		s.boxed(k.to, p.part, res.Err)
	}
	if p.awaits && failed {
		s.Replied(k.to, p.request) // it is answered: nothing is waited for
	}
	if p.part == agora.Whole {
		return
	}
	if failed && !p.part.Ends() && !p.piece {
		s.refuse(k, p.part, p.n, res.Err)
	}
	if p.part == agora.End && !failed {
		s.mu.Lock()
		s.ended.add(k)
		s.mu.Unlock()
	}
	switch {
	case failed && !p.first && st != nil && agora.AsError(res.Err).Code == agora.InvalidRequest:
		// The part was refused, the stream is open in the log still, and nothing
		// of it is taken any more: its receiver must not wait for the rest.
		s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
	case failed || p.part.Ends():
		s.end(k, st)
	}
}

// end forgets a stream, here and, with the next Tick, in presence: unless
// another of that name has begun meanwhile.
func (s *Sender) end(k streamKey, st *stream) {
	s.mu.Lock()
	current := st != nil && s.open[k] == st
	if current {
		delete(s.open, k)
		s.last = nil
	}
	if st != nil {
		stopTimer(st)
	}
	s.mu.Unlock()
	if current {
		s.relay.streamClosed(*s.cfg.Claim, k.to, k.stream)
	}
}

// Receipts returns the tiers that were asked for when the stream began, and whether that is known: not of one that has ended.
func (s *Sender) Receipts(to agora.Address, name string) (tiers agora.Receipts, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.find(&streamKey{to, name})
	if st == nil {
		return 0, false
	}
	return st.receipts, true
}

// Sends tells whether a stream to an address is open, and its kind.
func (s *Sender) Sends(to agora.Address, name string) (agora.Kind, bool) {
	to = s.Box(to, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[streamKey{to, name}]; st != nil {
		return st.kind, true
	}
	return 0, false
}

// Over reports whether a stream to an address has come to its normal end of late, and whether what comes of it is dropped in silence, as the stream
// was refused or cancelled.
func (s *Sender) Over(to agora.Address, name string) (ended, silent bool) {
	keys := [...]streamKey{{to, name}, {s.Box(to, name), name}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		ended, silent = ended || s.ended.has(k), silent || s.over.has(k)
	}
	return ended, silent
}

// Concludes notes the id of the message with which a stream to an address ends.
func (s *Sender) Concludes(to agora.Address, name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.concluded.put(streamKey{to, name}, id)
}

// Concluded reports whether a stream to an address was ended of late by the message of that id.
func (s *Sender) Concluded(to agora.Address, name, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id != "" && s.concluded.in[streamKey{to, name}] == id
}

// Unopened notes the id of a message with which a stream to an address was to open, and which was refused.
func (s *Sender) Unopened(to agora.Address, name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unopened == nil {
		s.unopened = new(fifo)
	}
	s.unopened.put(streamKey{to, name}, id)
}

// Reopens reports whether a message of a stream that was refused is the one with which it was to open, said again, and whether it may open now: not where
// another one was dropped in silence, as it would be missing.
func (s *Sender) Reopens(to agora.Address, name, id string, silent bool) (again, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unopened == nil {
		return false, false
	}
	k := streamKey{to, name}
	first, known := s.unopened.in[k]
	if again = id != "" && strings.TrimSuffix(first, missing) == id; again {
		return true, first == id
	}
	if known && silent {
		s.unopened.put(k, strings.TrimSuffix(first, missing)+missing)
	}
	return false, false
}

// missing stands behind the id of a message behind which others were dropped in silence.
const missing = "\x00"

// Cancelled closes a stream that its receiver has cancelled: what the agent
// still sends of it is dropped in silence. It returns false when the stream
// had come to its end already: then the cancel is nobody's news.
func (s *Sender) Cancelled(to agora.Address, name string) bool {
	to = s.Box(to, name)
	k := streamKey{to, name}
	s.mu.Lock()
	st, ended := s.open[k], s.ended.has(k)
	if st != nil {
		s.over.add(k)
	}
	s.mu.Unlock()
	if st == nil {
		return !ended
	}
	// The receiver drops it; the log needs it, so that the stream is closed there too.
	m := agora.Message{Kind: st.kind, Part: agora.Cancel, Stream: name, From: s.cfg.Claim.Agent, To: to}
	s.put(to, m, func(broker.Result) { s.end(k, st) })
	return true
}

// AbortOpen ends every open stream for good: the agent has left. It returns
// when the receivers' logs say so, or with the first error.
func (s *Sender) AbortOpen(ctx context.Context) error {
	s.mu.Lock()
	open := maps.Clone(s.open)
	s.mu.Unlock()
	for k, st := range open {
		s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
	}
	return s.Flush(ctx)
}

// Broken ends a stream for its receiver of which a part was refused before it
// came into its lane, as err says: what follows would go on over a hole.
func (s *Sender) Broken(to agora.Address, name string, n uint64, err error) {
	k := streamKey{s.Box(to, name), name}
	s.mu.Lock()
	st := s.open[k]
	if st == nil || st.ended || s.closed {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if !st.pieces {
		s.refuse(k, agora.Chunk, n, err)
	}
	s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
}

// Review ends every open stream that may not go on, and tells the agent so; what still comes of them is dropped. The last piece of
// a frame tells it of itself.
func (s *Sender) Review(mayGoOn func(agora.Address, agora.Kind) error, tell func(to agora.Address, name string, err error)) {
	s.mu.Lock()
	open := maps.Clone(s.open)
	s.mu.Unlock()
	for k, st := range open {
		if err := mayGoOn(k.to, st.kind); err != nil {
			s.Broken(k.to, k.stream, 0, err)
			if !st.pieces {
				tell(k.to, k.stream, err)
			}
		}
	}
}

// abort puts the cluster's own end of a stream into its lane.
func (s *Sender) abort(k streamKey, st *stream, code agora.Code, done func(broker.Result)) {
	m := agora.AbortBody{Code: code}.Message()
	m.Kind, m.Stream, m.From, m.To = st.kind, k.stream, s.cfg.Claim.Agent, k.to
	s.put(k.to, m, func(res broker.Result) {
		if res.Err == nil || agora.AsError(res.Err).Code == agora.Unavailable { // then the lane, or who has it next, owes the receiver an end
			s.end(k, st)
		}
		done(res)
	})
}

func stopTimer(st *stream) {
	if st.timer != nil {
		st.timer.Stop()
	}
}

// fifo is a set of the streams added last, each with a word about it.
type fifo struct {
	in    map[streamKey]string
	order []streamKey
}

// remembered is how many refused, cancelled or ended streams a sender keeps in mind.
const remembered = 1024

func (f *fifo) has(k streamKey) bool {
	_, ok := f.in[k]
	return ok
}

func (f *fifo) add(k streamKey) { f.put(k, "") }

// put adds a stream, or replaces what is said of it.
func (f *fifo) put(k streamKey, word string) {
	if f.in == nil {
		f.in = map[streamKey]string{}
	}
	known := f.has(k)
	if f.in[k] = word; known {
		return
	}
	f.order = append(f.order, k)
	for len(f.order) > remembered {
		delete(f.in, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *fifo) remove(k streamKey) { delete(f.in, k) }

// requestMark begins the name under which presence keeps a request with a
// deadline; no stream of an agent's begins so.
const requestMark = "\x00"

func requestStream(id string) string { return requestMark + id }

func requestID(stream string) (string, bool) {
	if len(stream) == 0 || stream[:1] != requestMark {
		return "", false
	}
	return stream[1:], true
}
