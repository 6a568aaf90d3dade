package relay

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// SenderConfig names the session that sends.
type SenderConfig struct {
	Claim     *presence.Claim // which does not change
	Principal string          // whose it is, beside its agent; empty where nobody has asked
	Dirty     uint64          // the highest epoch that ended without handing over
	Deposed   func()          // the claim was taken; called at most once a lane, never blocking
	// Asker learns of what is sent without an asker of its own, and of a deadline that has passed where the other end
	// was told: of a stream, or of a request by the id of its frame.
	Asker Asker
}

// Sender is what one session sends, to whomever: a lane each, one window for
// all. Its methods may be called at the same time; the order of messages to
// one addressee is that of the calls to Send.
type Sender struct {
	streamSet
	boxes *boxes // of calls that the agent was asked; nil while there were none. The lock of the laneSet guards it
}

// Sender returns the sender of a session, and the lanes that earlier holders of that have used. Close it when the
// session is over here.
func (r *Relay) Sender(cfg SenderConfig, lanes []presence.Lane) *Sender {
	s := new(Sender)
	s.relay, s.cfg, s.window.size = r, cfg, r.cfg.InFlight
	s.mu.Lock()
	for _, l := range lanes {
		s.inherit(l)
	}
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.senders[&s.laneSet] = struct{}{}
	return s
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
		s.opens(k, st)
		s.expire(k, st, o.Deadline, false)
		if l.To.IsBox() {
			s.known().resume(l.To, o.Stream)
		}
	}
}

// Close ends every lane and deadline here; what is not stored is answered
// with UNAVAILABLE. The session may go on elsewhere.
func (s *Sender) Close() {
	s.mu.Lock()
	closed := s.closed
	s.uncount(len(s.open))
	s.closed = true
	s.stopDeadlines()
	s.mu.Unlock()
	if closed {
		return
	}
	s.relay.mu.Lock()
	delete(s.relay.senders, &s.laneSet)
	s.relay.mu.Unlock()
	s.closeAll()
	s.timers.Wait()
}

// Sends reports whether a stream to an address is open, and its kind. Named by its box it is the answer of that call,
// not the call's request of the same name.
func (s *Sender) Sends(to agora.Address, name string) (agora.Kind, bool) {
	at := s.boxOf(to.Peer(), name)
	switch {
	case !to.IsBox():
		to = at
	case at.IsBox() && at != to:
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[streamKey{to, name}]; st != nil {
		return st.kind, true
	}
	return 0, false
}

// Send takes a message to an agent or a space. It blocks while the window is full and, when a lane or a stream begins,
// for a round trip to presence. An error is to be settled by [Sender.Refuse], and nobody is told more; else the asker
// is told once, unless the message belongs to a stream that was refused or cancelled before: that is dropped without a
// word. Of a chunk that has neither an asker of its own nor an id, and of which no receipt tells by its index, nothing
// is kept.
func (s *Sender) Send(ctx context.Context, m agora.Message, o Options) (err error) {
	k := streamKey{m.To, m.Stream}
	if m.Part == agora.Start {
		defer func() { s.began(k, err) }()
	}
	l, st, told := s.goesOn(&k, &m, &o)
	if l == nil {
		if m.Part != agora.Whole && m.Part != agora.Cancel && s.dropped(k, m.Part, m.N) {
			s.pass(m.To, m.N)
			if o.Answered {
				return agora.Errorf(agora.StreamNotFound, "stream %q to %q is over", m.Stream, m.To.Peer().Name())
			}
			return nil
		}
		if m.Kind == agora.Control { // a request is given up: its deadline counts no more
			s.replied(m.To, m.AbortBody().Request)
		}
		var reserved bool
		l, reserved, err = s.prepare(ctx, &m, o)
		if reserved {
			defer s.unreserve()
		}
		if err != nil {
			s.unasked(k.to, o.Request, &m)
			return err
		}
	}
	defer s.release(l)
	if m.N > 0 {
		if err := s.awaitTurn(ctx, &m); err != nil {
			return err
		}
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
	p.sender, p.asker, p.lane, p.key, p.part, p.size = s, o.Asker, l, k, m.Part, size
	p.sent = Sent{To: k.to.Peer(), Stream: k.stream, N: m.N, Index: m.Index, Indexed: m.Indexed, Frame: o.Frame, Receipts: o.Receipts}
	if p.asker == nil {
		p.asker = s.cfg.Asker
	}
	if p.stream = st; st == nil {
		p.stream, p.first, p.silences = s.track(k, m, o, l)
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

// goesOn says which receipts a message wants: its own, and those of the stream that it belongs to. It returns the
// stream that a chunk belongs to, and its lane, where there is nothing to ask before the chunk may go into it: nearly
// all messages are such chunks. told settles it. Else it returns nil. The caller releases the lane.
func (s *Sender) goesOn(k *streamKey, m *agora.Message, o *Options) (l *lane, st *stream, told func(broker.Result)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Part > agora.Start {
		if st = s.find(k); st != nil {
			o.Receipts |= st.receipts
		} else if m.Indexed {
			o.Receipts |= agora.Stored // it has ended, and comes again from a sender that lacks a receipt; or presence has lost what was asked
		}
	}
	m.Meta.Receipts = o.Receipts &^ agora.Stored
	if m.Part != agora.Chunk || st == nil || st.lane == nil || st.lane.aside || st.lane.paused || st.lane.peer.full.Load() ||
		st.lane.peer.slows(s.cfg.Claim.Agent) || s.past.isSilent(*k) || s.turns(k.to, m.N) {
		return nil, nil, nil
	}
	st.lane.using++
	return st.lane, st, st.told
}

// prepare returns the message's lane, once the addressee is known to be there and presence knows of the lane and the
// stream. The caller releases it, and what was reserved for a stream that is to open.
func (s *Sender) prepare(ctx context.Context, m *agora.Message, o Options) (l *lane, reserved bool, err error) {
	begins := m.Part == agora.Start || m.Part == agora.Whole
	s.mu.Lock()
	l = s.lanes[m.To]
	used := s.mayHaveUsed(m.To)
	_, parked := s.parked[m.To]
	st := s.open[streamKey{m.To, m.Stream}]
	s.mu.Unlock()
	if !begins && m.Kind != agora.Control && l == nil && !used { // a cancel may be the first word to a stream's sender
		if err := s.mayHaveBegun(ctx, m); err != nil {
			return nil, reserved, err
		}
	}
	if begins && s.relay.away(m, l) {
		return nil, false, logAway()
	}
	if m.Part == agora.Start && st == nil {
		if err := s.reserve(); err != nil {
			return nil, false, forGood(m.N, err)
		}
		reserved = true
	}
	if begins {
		if err := s.reach(ctx, m, l); err != nil {
			return nil, reserved, err
		}
	}
	if l == nil && !parked && !(m.To.IsBox() && (m.Part == agora.Whole || m.Kind == agora.Control)) || begins && (m.Part == agora.Start || !m.Meta.Deadline.IsZero()) {
		if err := s.note(ctx, m, o); err != nil {
			return nil, reserved, err
		}
	}
	l = s.lane(m.To)
	if err := s.pace(l, m); err != nil {
		s.release(l)
		return nil, reserved, err
	}
	return l, reserved, nil
}

// mayHaveBegun returns STREAM_NOT_FOUND for a part of a stream in a lane that the session is not known to have used. An
// earlier holder of a resumed one may have, and presence have lost the word of it: the log tells, unless there is
// nobody to whom a stream could have begun.
func (s *Sender) mayHaveBegun(ctx context.Context, m *agora.Message) error {
	var err error
	if s.cfg.Claim.Resumed {
		err = s.reach(ctx, m, nil)
	}
	if !s.cfg.Claim.Resumed || err != nil && agora.AsError(err).Code == agora.AgentNotFound {
		return agora.Errorf(agora.StreamNotFound, "stream %q to %q was never started", m.Stream, m.To.Peer().Name())
	}
	return err
}

// away reports whether a message is to be refused at once, as the log has been away for longer than an election takes.
// What is numbered is taken in nevertheless: the one who numbers sends again what is refused, and nothing behind it
// could be taken before, not even the rest of streams that still have a chance.
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
	p := (*peer)(nil)
	if l != nil {
		p = l.peer
	} else {
		p = s.relay.peer(m.To)
	}
	if p.isKnown() {
		return nil
	}
	return p.lookup(ctx)
}

// note tells presence of the lane and of the stream or request that begins in it, so that
// the one who ends the session can end them.
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
	if open != nil {
		if out := s.relay.streamOpens(s.cfg.Claim, m.To, open.Stream); out != nil {
			select {
			case <-out:
			case <-ctx.Done():
			}
		}
	}
	if m.Part == agora.Start {
		s.begins(streamKey{m.To, m.Stream}, open)
	}
	err := s.relay.cfg.Presence.Lanes.Use(ctx, *s.cfg.Claim, m.To, open)
	if errors.Is(err, presence.ErrDeposed) && guard.Looks && s.relay.cfg.Reassert != nil { // presence may have lost the claim
		held, failed := s.relay.cfg.Reassert(ctx, *s.cfg.Claim)
		switch {
		case failed != nil: // it is not known to be another's
			err = failed
		case held:
			err = s.relay.cfg.Presence.Lanes.Use(ctx, *s.cfg.Claim, m.To, open)
		}
	}
	if err != nil {
		return agora.AsError(err)
	}
	if m.Part == agora.Whole && open != nil {
		s.await(m, o)
	}
	return nil
}

// track returns the stream that a part belongs to, nil where none is open. first tells that the part begins it: a start
// may be one that is sent again. silences tells that it is a cancel by which what still comes is dropped, as it was not
// before.
func (s *Sender) track(k streamKey, m *agora.Message, o Options, l *lane) (st *stream, first, silences bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.open[k]
	if st != nil {
		s.uses(st, l)
	}
	switch {
	case m.Kind == agora.Control:
		return nil, false, false
	case m.Part == agora.Start && (st == nil || st.state == streamEnding):
		st = &stream{key: k, kind: m.Kind, indexed: m.Indexed || m.N > 0, receipts: o.Receipts, frame: o.Frame, pieces: o.Piece}
		s.uses(st, l)
		s.opens(k, st)
		delete(s.owed, k)
		s.relay.streamOpens(s.cfg.Claim, k.to, k.stream) // what was refused may have ended since presence was told
		s.expire(k, st, m.Meta.Deadline, false)
		return st, true, false
	case m.Part == agora.Start:
		st.hears(startSaid)
	case m.Part.Ends() && st != nil:
		st.hears(endSaid)
	}
	if m.Part == agora.Cancel {
		silences = s.past.silence(k, m.N)
	}
	return st, false, silences
}

// uses has the parts of a stream go into a lane; mu is held.
func (s *Sender) uses(st *stream, l *lane) {
	if st.lane != l {
		st.lane, st.told = l, func(res broker.Result) {
			p := pendingSend{sender: s, asker: s.cfg.Asker, lane: l, key: st.key, stream: st, part: agora.Chunk, size: res.Size + overhead}
			p.sent = Sent{To: st.key.to.Peer(), Stream: st.key.stream, N: res.N}
			p.complete(res)
		}
	}
}
