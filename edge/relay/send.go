package relay

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Send takes a message to an agent or a space. It blocks while the window is
// full and, when a lane or a stream begins, for a round trip to presence. An
// error is to be settled by [Sender.Refuse], and nobody is told more; else the asker is
// told once, unless the message belongs to a stream that was refused or cancelled before: that is dropped
// without a word. Of a chunk that has neither an asker of its own nor an id, and of which no receipt tells by its index, nothing is kept.
func (s *Sender) Send(ctx context.Context, m agora.Message, o Options) (err error) {
	k := streamKey{m.To, m.Stream}
	if m.Part == agora.Start {
		defer func() { s.began(k, err) }()
	}
	l, st, told := s.goesOn(&k, &m, &o)
	if l == nil {
		if m.Part != agora.Cancel && s.dropped(k, m.Part, m.N) {
			s.pass(m.To, m.N)
			if o.Answered {
				return agora.Errorf(agora.StreamNotFound, "stream %q to %q is over", m.Stream, m.To.Peer().Name())
			}
			return nil
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
	if err := s.settled(ctx, &m); err != nil {
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

// goesOn says which receipts a message wants: its own, and those of the stream that it belongs to. It returns the stream that a chunk belongs to, and
// its lane, where there is nothing to ask before the chunk may go into it: nearly all messages are
// such chunks. told settles it. Else it returns nil. The caller releases the lane.
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
		st.lane.peer.slows(s.cfg.Claim.Agent) || s.past.over.has(*k) || s.turns(k.to, m.N) {
		return nil, nil, nil
	}
	st.lane.using++
	return st.lane, st, st.told
}

// prepare returns the message's lane, once the addressee is known to be there
// and presence knows of the lane and the stream. The caller releases it, and what was reserved for a stream that is to open.
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

// mayHaveBegun returns STREAM_NOT_FOUND for a part of a stream in a lane that the session is not known to have used. An earlier holder of a resumed one may have, and
// presence have lost the word of it: the log tells, unless there is nobody to whom a stream could have begun.
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

// track returns the stream that a part belongs to, nil where none is open.
// first tells that the part begins it: a start may be one that is sent again. silences tells that it is a cancel by which what still comes is dropped,
// as it was not before.
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
