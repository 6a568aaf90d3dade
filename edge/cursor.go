package edge

import (
	"context"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// cursor is how far an agent has got with its mailbox; how far with a space
// stands with its subscription. Session's mu guards it.
type cursor struct {
	acked         uint64 // known to have arrived
	written       uint64 // written to the socket
	handed        uint64 // given to the door to write
	reread        uint64 // given to a reader of the door that reads the log by itself
	pingNumber    uint64 // number of the last ping
	unackedFrames int32  // frames of the mailbox written since the last ping
	pingPending   bool   // a ping that confirms is under way
	pingSeq       uint64 // what its pong confirms
}

// openInbox finds where delivery begins, and up to where frames may have been
// given to an earlier socket, and opens the inbox there.
func (s *Session) openInbox(ctx context.Context, h Hello, rec presence.Record) error {
	p := rec.Position
	s.after, s.markTo = p.Cursor, p.Written
	beyond := s.aheadOfLog(ctx, h, p)
	switch {
	case h.HasLast && !beyond: // the client knows best
		s.after, s.markTo = h.LastSeq, 0
	case !rec.Clean:
		tail, err := s.lastInLog(ctx)
		if err != nil {
			return err
		}
		s.markTo = tail
	}
	if !guard.Cursors {
		var err error
		if s.after, err = s.lastInLog(ctx); err != nil {
			return err
		}
	}
	s.acked, s.written = s.after, max(s.after, p.Written)
	s.handed = max(s.written, s.markTo) // which it may acknowledge
	if p.TailAt.IsZero() && s.claim.Resumed {
		p.TailAt = rec.Card.RegisteredAt // nothing was sent to it before it was known
	}
	from := s.after
	if beyond { // and stays so, whatever comes now: the inbox tells a gap, and begins anew
		from = agora.MaxSeq - 1
	}
	s.inbox = s.node.cfg.Broker.Listen(s.address(), broker.From{
		After: from, Tail: p.Tail, TailAt: p.TailAt, Quiet: rec.Quiet,
	}, s.conn.Wake)
	return nil
}

// aheadOfLog reports whether the client has named a position that the log has not come to: what comes next would pass for what it has dealt with.
func (s *Session) aheadOfLog(ctx context.Context, h Hello, p presence.Position) bool {
	if !h.HasLast || h.LastSeq <= max(p.Cursor, p.Written, p.Tail) {
		return false
	}
	reached, err := s.node.cfg.Broker.Reached(ctx, s.address(), h.LastSeq)
	return err == nil && !reached // else it is believed: nobody can tell now
}

// lastInLog returns the position of the last frame of the mailbox, read from the log: while that does not answer, again and again for
// as long as an election takes.
func (s *Session) lastInLog(ctx context.Context) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.Broker.Election())
	defer cancel()
	for {
		seq, err = s.node.cfg.Broker.Last(ctx, s.address())
		if err == nil || !pause.For(ctx, 100*time.Millisecond) {
			return seq, err
		}
	}
}

// Written takes note that what the last Pull returned has been written, if it returned anything: also of a session whose
// socket is closing, or what its agent heard last would be taken for lost. It never blocks.
func (s *Session) Written() {
	s.order.queued()
	if len(s.pulled) == 0 || s.withheld {
		return
	}
	s.mu.Lock()
	for i := range s.pulled {
		d := &s.pulled[i]
		d.span.End(nil)
		if d.Event == nil {
			s.written = max(s.written, d.seq())
			s.unackedFrames++
		} else {
			d.sub.written = max(d.sub.written, d.seq())
		}
	}
	if s.proof.is(ByWrite) {
		s.writtenProves()
	}
	data, ask := s.pingEarly()
	s.mu.Unlock()
	if ask {
		s.conn.Notify(Notice{Kind: NoticePing, Data: data})
	}
	if s.stamp >= s.since { // what waited for the agent to come says nothing of the way here
		s.node.stats.toWritten.Observe(time.Duration(s.node.cfg.Broker.Now().UnixNano() - s.stamp))
	}
	s.receiptsWritten(s.pulled, agora.Delivered)
	clear(s.pulled)
	s.pulled = s.pulled[:0]
	s.markMoved()
}

// pingEarly prepares a ping where so much is unconfirmed that its senders would
// soon be refused for it: who reads thousands of messages a second, and acknowledges
// none, would have its mailbox taken for full before the next ping is due. The caller holds mu.
func (s *Session) pingEarly() (data uint64, ask bool) {
	if s.pingPending || !s.proof.is(ByPong) || int64(s.unackedFrames) < max(1, s.node.cfg.MaxRecords/8) {
		return 0, false
	}
	return s.preparePing()
}

// markMoved has the positions written behind.
func (s *Session) markMoved() {
	if !s.unwritten.Swap(true) {
		s.node.sessions.markMoved(s)
	}
}

// preparePing prepares a ping whose pong will confirm what is written now. The
// caller holds mu. It tells whether there is anything to confirm.
func (s *Session) preparePing() (data uint64, confirm bool) {
	if s.pingPending {
		return s.pingNumber, true // its pong will come, or the connection is dead
	}
	s.pingNumber++
	s.unackedFrames = 0
	if !s.proof.is(ByPong) {
		return s.pingNumber, false
	}
	confirm = s.written > s.acked
	s.pingSeq = s.written
	for _, p := range s.subscriptions {
		confirm = confirm || p.written > p.acked
		p.pinged = p.written
	}
	s.pingPending = confirm
	return s.pingNumber, confirm
}

// Pong takes the data of a pong. The pong of the last confirming ping proves
// that what was written before it has arrived: frames keep their order.
func (s *Session) Pong(data uint64) {
	s.Alive()
	if data&probeMark != 0 {
		s.answered.Store(data)
		return
	}
	s.mu.Lock()
	if !s.pingPending || data != s.pingNumber || !s.proof.is(ByPong) {
		s.mu.Unlock()
		return
	}
	s.pingPending = false
	s.acked = max(s.acked, s.pingSeq)
	for _, p := range s.subscriptions {
		p.acked = max(p.acked, p.pinged)
	}
	s.mu.Unlock()
	s.receiptsAcked()
	s.markMoved()
}

// IdlePong is Pong where that has nothing to do: it returns false, and has done nothing, where the pong confirms or answers something.
func (s *Session) IdlePong(data uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data&probeMark != 0 || s.pingPending {
		return false
	}
	s.Alive()
	return true
}

// Ack notes that everything up to a position has arrived: of the mailbox, or
// of a space where one is named. INVALID_REQUEST for a position that was
// never delivered, UNAVAILABLE where that can't be told now. It blocks, for a round trip to the log, only when the position is one
// of a space that the agent was in before, and news to this edge.
func (s *Session) Ack(ctx context.Context, space string, seq uint64) error {
	if space != "" {
		return s.ackSpace(ctx, space, seq)
	}
	s.mu.Lock()
	if seq > s.handed {
		s.mu.Unlock()
		return neverDelivered(seq)
	}
	s.proof.acks()
	s.acked = max(s.acked, seq)
	s.mu.Unlock()
	s.receiptsAcked()
	s.markMoved()
	return nil
}

func (s *Session) ackSpace(ctx context.Context, space string, seq uint64) error {
	s.mu.Lock()
	p := s.subscriptions[space]
	var before uint64 // up to where it may have been delivered
	if p != nil {
		before = p.handed
	}
	s.mu.Unlock()
	if p == nil {
		return agora.Errorf(agora.InvalidRequest, "ack: not a member of space %q", space)
	}
	if p.resumed { // asked without the lock: the subscription has one of its own
		tail, _, _ := p.Tail()
		before = max(before, tail)
	}
	if p.resumed && seq > before { // an edge before this one may have heard of more
		last, err := s.lastEvent(ctx, space)
		if err != nil {
			return err
		}
		before = max(before, last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq > max(p.handed, before) {
		return neverDelivered(seq)
	}
	s.proof.acks()
	p.acked = max(p.acked, seq)
	s.markMoved()
	return nil
}

// lastEvent returns the position of the last event of a space, read from the log.
func (s *Session) lastEvent(ctx context.Context, space string) (uint64, error) {
	ctx, done := s.patient(ctx)
	defer done()
	last, err := s.node.cfg.Broker.Last(ctx, agora.ToSpace(s.claim.Tenant, space))
	if err != nil {
		return 0, agora.AsError(err)
	}
	return last, nil
}

func neverDelivered(seq uint64) error {
	return agora.Errorf(agora.InvalidRequest, "ack: seq %d was never delivered", seq)
}

// markHanded takes note of what is about to be written: the client may acknowledge it before the writer comes back. What was withheld of
// a space that the agent has left since, or joined again, is dropped: its subscription gives what is wanted now. It returns
// false where the session is over here: its next holder may have been told a position without what was pulled.
func (s *Session) markHanded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	stale := func(d *Delivery) bool { return d.Event != nil && s.subscriptions[d.Event.To.Space] != d.sub }
	drop := false
	for i := range s.pulled {
		d := &s.pulled[i]
		switch {
		case d.Event == nil:
			s.handed = max(s.handed, d.seq())
		case stale(d):
			drop = true
		default:
			d.sub.handed = max(d.sub.handed, d.seq())
		}
	}
	if drop {
		s.pulled = slices.DeleteFunc(s.pulled, func(d Delivery) bool { return stale(&d) })
	}
	return true
}

// markHandedAside is handed for what a reader has read by itself, up to a position.
func (s *Session) markHandedAside(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.reread = max(s.reread, seq)
	return true
}

// position returns how far the agent is with its mailbox.
func (s *Session) position() presence.Position {
	tail, at := s.inbox.Tail()
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.Position{Cursor: s.acked, Written: max(s.handed, s.reread), Tail: tail, TailAt: at}
}

// positionTold is position, but that its cursor goes no further than senders were told: should this edge end before it could tell them, the
// agent's next one does.
func (s *Session) positionTold() presence.Position {
	p := s.position()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		if low := s.pending.lowestUntold(); low > 0 {
			p.Cursor = min(p.Cursor, low-1)
		}
	}
	return p
}

// spacePositions returns how far the agent is in its spaces.
func (s *Session) spacePositions() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make(map[string]uint64, len(s.subscriptions))
	for name, p := range s.subscriptions {
		at[name] = p.acked
	}
	return at
}

// positionChanges returns the positions to be written behind: of the spaces only
// those that moved since the last call.
func (s *Session) positionChanges() presence.Moved {
	s.unwritten.Store(false) // before they are read: what moves now moves again
	m := presence.Moved{Claim: s.claim, Position: s.positionTold()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.subscriptions {
		if p.acked == p.persisted {
			continue
		}
		if m.Spaces == nil {
			m.Spaces = map[string]uint64{}
		}
		m.Spaces[name] = p.acked
		p.persisted = p.acked
	}
	return m
}

// forgetPersisted makes the next changes tell of every space: the last ones were lost.
func (s *Session) forgetPersisted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.subscriptions {
		p.persisted = 0
	}
}
