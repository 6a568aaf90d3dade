package relay

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
)

// A request of a call names the box for its answer. boxes is what a session's sender knows of those that its agent was
// handed: an agent replies to whoever asked, by the request's id, and the parts of a streamed reply name their stream.
// Where the agent was asked before its session came here, presence lists the calls that are open.

// called notes that the agent is handed the request of a call, whose answer goes into a box.
func (s *Sender) called(peer agora.Address, m *agora.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known().add(peer, m.ClientID(), m.Meta.Call, m.Stream)
}

// Decided notes that a reply has decided the approval of a box: it alone goes there when it is said again. It needs no
// place in a lane, and its number is used up.
func (s *Sender) Decided(name string, m *agora.Message) {
	s.mu.Lock()
	if x := s.known().all[name]; x != nil {
		s.boxes.hears(x, answerSaid)
		x.decided, x.n, x.id = true, m.N, m.ID
	}
	s.mu.Unlock()
	s.pass(m.To, m.N)
}

// HasDecided reports whether a reply of the agent's, the one that goes into a box, has decided the approval of that.
func (s *Sender) HasDecided(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.known().all[name]
	return x != nil && x.decided
}

// known returns the boxes, which it makes where there are none; mu is held.
func (s *Sender) known() *boxes {
	if s.boxes == nil {
		s.boxes = newBoxes()
	}
	return s.boxes
}

// Cut notes that a stream to the agent has been given up by its sender, or is cancelled by the agent: where it is the
// request of the call whose answer goes into a box, the agent need not be told that nobody waits for that answer.
// Another call may have a stream of the same name open.
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

// missed notes that messages to the agent are lost, among them perhaps the word that nobody waits for an answer of its
// any more.
func (s *Sender) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes != nil {
		s.boxes.missed()
	}
}

// Route returns where a message of the agent's goes: the answer of a call into its box, as does that the agent cancels
// a stream which is its request; everything else where it is addressed. It takes two round trips to presence when the
// agent replies for the first time to something that it was not handed here, or cancels that, and when it answers what
// may have been ended unheard. An error is UNAVAILABLE: presence can't report whether somebody waits for the answer.
func (s *Sender) Route(ctx context.Context, m *agora.Message) (to agora.Address, err error) {
	if m.Kind != agora.Reply && m.Part != agora.Cancel || m.To.IsSpace() {
		return m.To, nil
	}
	s.mu.Lock()
	for x := s.boxes.unsure(m); x != nil; x = s.boxes.unsure(m) {
		if err = s.lookUp(ctx, x); err != nil {
			s.mu.Unlock()
			return m.To, err
		}
	}
	to, found := s.boxes.route(m)
	asks := m.Part <= agora.Start || m.Part == agora.Cancel && s.cfg.Claim.Resumed
	ask := !found && asks && !(s.boxes != nil && s.boxes.listed)
	s.mu.Unlock()
	if !ask {
		return to, nil
	}
	s.list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	to, _ = s.boxes.route(m)
	return to, nil
}

// lookUp asks presence whether somebody waits for the answer that goes into a box. mu is held, but not meanwhile.
func (s *Sender) lookUp(ctx context.Context, x *box) error {
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.relay.cfg.Answer)
	defer cancel()
	over, err := s.relay.cfg.Presence.Calls.IsOver(ctx, x.at.Tenant, x.at.Space)
	s.mu.Lock()
	if err != nil {
		return err
	}
	s.boxes.hears(x, answerWaitedFor)
	if over {
		s.boxes.giveUp(x.at.Peer(), x.at.Space, func(streamKey) bool { return false })
	}
	return nil
}

// list asks presence for the calls that are not over.
func (s *Sender) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.relay.cfg.Answer)
	defer cancel()
	calls, whole, err := s.relay.cfg.Presence.Calls.ToAnswer(ctx, s.cfg.Claim.Tenant, s.cfg.Claim.Agent)
	if err != nil {
		s.relay.cfg.Log.Debug("open calls could not be read", "agent", s.cfg.Claim.Agent, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known().listed = whole
	for _, c := range calls {
		s.boxes.add(agora.ToAgent(c.Tenant, c.From), c.Request, c.Box, c.Request)
	}
}

// boxed notes what became of a part of an answer.
func (s *Sender) boxed(to agora.Address, m agora.Part, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes != nil {
		s.boxes.settle(to, m, err)
	}
}

// callOver takes the word that nobody waits for the answer that goes into a box any more: what still comes of it goes
// to the mailbox of who asked. Where the answer is a stream that is open, that is closed, and the message becomes its
// cancel. It returns false where the agent is not to be told, as it has answered.
func (s *Sender) callOver(peer agora.Address, m *agora.Message) (news bool) {
	s.mu.Lock()
	box, stream, open, tell := s.known().giveUp(peer, m.Meta.Call, func(k streamKey) bool { return s.open[k] != nil })
	s.mu.Unlock()
	if !open {
		return tell
	}
	s.cancelled(box, stream)
	m.Part, m.Stream = agora.Cancel, stream // and the body says why
	return true
}

// boxOf returns the address under which a stream to a peer is open: that of a box where it is the answer of a call.
func (s *Sender) boxOf(peer agora.Address, stream string) agora.Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes != nil {
		if x := s.boxes.streams[streamKey{peer, stream}]; x != nil {
			return x.at
		}
	}
	return peer
}

// awaitTurn waits until what was numbered before a numbered message, to the same peer, is settled where it went into
// another lane: a receipt speaks of all numbers up to its own, whatever lane they took.
func (s *Sender) awaitTurn(ctx context.Context, m *agora.Message) error {
	if m.To.IsSpace() || !guard.Turns {
		return nil
	}
	s.mu.Lock()
	if s.boxes == nil {
		s.mu.Unlock()
		return nil
	}
	before := s.numbers.into(m.To)
	l := s.lanes[before]
	s.mu.Unlock()
	if before == m.To || l == nil {
		return nil
	}
	if err := l.Flush(ctx); err != nil && ctx.Err() != nil {
		return agora.AsError(ctx.Err())
	}
	return s.InTurn(m)
}

// turns reports whether a numbered part goes into another lane than the number before it; mu is held.
func (s *Sender) turns(to agora.Address, n uint64) bool {
	return s.boxes != nil && n > 0 && !to.IsSpace() && s.numbers.moves(to)
}

// Continuation is how a part of an answer continues with what its agent has said before.
type Continuation uint8

// The continuations of [Sender.Continue].
const (
	Goes    Continuation = iota // into the stream that is open, or as a whole answer
	Opens                       // behind a start that is to be said first: no stream of its name is open
	Known                       // not: it is stored already
	Dropped                     // not: its stream was refused or cancelled, and nobody waits to hear so
	NotOpen                     // not: its stream has ended
)

// Continue tells how a part continues with the agent's answer to a request of m.To's, which m.Meta.Parent names: so is
// its stream called. A part that belongs to a stream is made one of that: a whole answer is its end. waits tells that
// somebody waits for what becomes of the part.
func (s *Sender) Continue(m *agora.Message, waits bool) Continuation {
	name := m.Meta.Parent
	kind, open := s.Sends(m.To, name)
	k, boxed := streamKey{m.To, name}, streamKey{s.boxOf(m.To, name), name}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case open && (kind == m.Kind || m.Part == agora.Chunk):
		m.Kind, m.Stream = kind, name
		if m.Part == agora.Whole {
			m.Part = agora.End
			s.past.at(k).answer = m.ID
		}
		return Goes
	case m.Kind == agora.Reply && m.Part == agora.Whole:
		if s.past.isAnswer(k, m.ID) {
			return Known
		}
		return Goes
	case m.Kind == agora.Request:
		return NotOpen
	}
	silent := s.past.isSilent(k) || s.past.isSilent(boxed)
	again, may := false, false
	if silent {
		again, may = s.past.reopens(k, m.ID, !waits)
	}
	switch {
	case silent && !waits && !again: // it was answered for
		return Dropped
	case silent && !may || s.past.hasEnded(k) || s.past.hasEnded(boxed):
		return NotOpen
	}
	m.Stream = name
	return Opens
}

// Unopened notes the part of an answer with which a stream was to open, and which was refused. It alone may open it
// when it is said again, unless another one was dropped in silence behind it, as that would be missing.
func (s *Sender) Unopened(m *agora.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.unopen(streamKey{m.To, m.Meta.Parent}, m.ID)
}
