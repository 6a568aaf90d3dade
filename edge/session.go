package edge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// Conn is a door's connection as its session sees it. No method blocks; all
// may be called from any goroutine, also after the connection has gone.
type Conn interface {
	Wake()         // Pull has something
	Notify(Notice) // write this behind what is queued
	Close(Reason)  // write what is queued, if the socket takes it, then close
}

// Reason says why the node closes a connection. A door says it in words of its protocol.
type Reason struct {
	Cause Cause
	Code  agora.Code // of the error that the agent is told before; empty for none
	Text  string     // one sentence for the agent
}

// Session is an agent's live connection. The door calls Pull, Queued and Written from its one
// writing goroutine; everything else may be called from anywhere. What one
// goroutine says is stored in its order.
type Session struct {
	node     *Node
	actor    *Actor
	claim    presence.Claim
	conn     Conn
	name     string                 // of the connection
	token    string                 // with which the session is taken over
	slot     *admission.Slot        // of the connection among all of the edge; nil where it is never shed
	wants    agora.Receipts         // for everything that it sends
	slow     func() []agora.AgentID // see Hello; nil for none
	withheld bool                   // pulled was read and not returned, as the edge may not deliver: the next Pull does; the writer's own
	inbox    *broker.Inbox
	outgoing atomic.Pointer[relay.Sender] // nil until the agent sends something: see sender
	unclean  uint64                       // the highest epoch of its holders that ended without handing over
	after    uint64                       // position at which delivery began
	markTo   uint64                       // frames up to here may have been given to an earlier socket
	receipts receiptBox                   // cumulative receipts for this agent
	timer    Timer
	order    order
	pulled   []Delivery // what the last Pull returned, until Written; the writer's own
	stamp    int64      // when the oldest of pulled was stored, by the log's clock; 0 where that says nothing; the writer's own
	beaten   int64      // ticks when the last agent.heartbeat went; the wheel's own

	since     int64         // when the session began here, by the log's clock in Unix nanoseconds; set before it is shared
	heard     atomic.Int64  // ticks at the last sign of life
	probes    atomic.Uint64 // pings that probed
	answered  atomic.Uint64 // data of the last pong of such a ping
	begun     atomic.Bool
	blocked   waits       // of its verbs: meanwhile the edge itself does not read the socket
	unwritten atomic.Bool // stands among those whose positions are to be written
	kept      atomic.Bool // a Pull was refused, as the edge may not deliver
	soon      atomic.Bool // the timer is armed to confirm
	proof     proof       // of what has arrived

	reviewed atomic.Pointer[reviewed]

	detaching  sync.Mutex // held while the session is detached, which blocks
	detached   bool       // guarded by detaching: nothing of it is left here
	incomplete bool       // guarded by detaching: it has gone, and parts were given up

	mu            sync.Mutex // guards the fields below; its maps are made when something comes into them
	card          card
	subscriptions map[string]*subscription
	ready         []*subscription // those whose Next may have something
	cancelled     map[streamKey]uint64
	callers       *callers             // who may be answered, where a policy rules
	incoming      map[streamKey]string // streams to this agent that have begun here, each with the request that it is or answers; empty for none
	aliases       map[string]string    // event ids by the id of the frame that began them
	pending       *receiptQueue        // receipts to be told to the senders of what this agent got; nil while there never was one
	cursor
	heartbeat bool
	goodbye   bool  // the agent said so: the session ends without a grace
	over      bool  // no verb is taken any more
	lost      bool  // a verb found the socket or the claim gone: the session goes on elsewhere, or not at all
	stopped   int64 // ticks when it was over
	why       Cause // it left: the first one that was known
}

// streamKey names a stream to this agent: of a peer, or an event of a space.
type streamKey struct {
	peer   agora.Address
	stream string
}

func (s *Session) address() agora.Address { return agora.ToAgent(s.claim.Tenant, s.claim.Agent) }

// Agent returns the id that the session is bound to.
func (s *Session) Agent() agora.AgentID { return s.claim.Agent }

// ID returns the id of the session, which stays when the agent returns in time.
func (s *Session) ID() string { return s.claim.Session }

// Conn returns the id of its connection.
func (s *Session) Conn() string { return s.name }

// Actor returns who the session acts for.
func (s *Session) Actor() *Actor { return s.actor }

// start wires the session up; it stays silent until Begin.
func (s *Session) start(h Hello, rec presence.Record) {
	s.timer.Fire = s.tick
	s.since = s.node.cfg.Broker.Now().UnixNano()
	s.heartbeat = h.Heartbeat
	s.proof.set(h.Proof)
	s.heard.Store(agora.Ticks())
	for _, c := range rec.Cancelled {
		put(&s.cancelled, streamKey{peerAddress(s.claim.Tenant, c.Peer), c.Stream}, c.Seq)
	}
	s.unclean = rec.Dirty
	if len(rec.Lanes) > 0 {
		s.outgoing.Store(s.newSender(rec.Lanes))
	}
	s.openSubscriptions(h, rec)
}

// Begin lets deliveries flow: the door has queued its answer to the Hello.
func (s *Session) Begin() {
	s.beaten = agora.Ticks()
	s.begun.Store(true)
	s.rearm(false, 0)
	s.conn.Wake()
}

// Update replaces the card of the running session: a second registration of
// the same id. heartbeat tells whether the agent knows agent.heartbeat now.
func (s *Session) Update(ctx context.Context, card agora.Agent, heartbeat bool) error {
	if err := errors.Join(s.actor.quota.Spend(0), s.node.limits.checkCard(&card)); err != nil {
		return agora.AsError(err)
	}
	s.mu.Lock()
	card.RegisteredAt = s.card.since()
	s.mu.Unlock()
	if err := s.setCard(ctx, card); err != nil {
		return agora.AsError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.keep(cardOf(card))
	}
	s.heartbeat = s.heartbeat || heartbeat
	return nil
}

// held is the session as presence is to have it again, should it have lost it.
func (s *Session) held() presence.Held {
	h := presence.Held{
		Claim: s.claim, Request: s.currentRequest(), Position: s.position(),
		Spaces: s.spacePositions(), Lanes: s.lanes(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		h.Away = max(s.node.cfg.Presence.Grace()-time.Duration(agora.Ticks()-s.stopped), time.Millisecond)
	}
	return h
}

// currentRequest is what the session would ask for now, as far as presence keeps it.
func (s *Session) currentRequest() presence.ClaimRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.ClaimRequest{
		Tenant: s.claim.Tenant, Agent: s.claim.Agent, Principal: s.actor.Principal().Name, Holder: s.node.Holder(),
		Conn: s.name, Session: s.claim.Session, Token: s.token, Card: s.card.of(s.claim.Agent), Dial: s.node.dials.of(s),
	}
}

// put puts a value into a map, which it makes where there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// deposed: another edge holds the claim. The socket is closed; whatever is
// still under way is refused by the log.
func (s *Session) deposed() {
	s.conn.Close(Reason{Cause: TakenOver, Text: "the session goes on elsewhere"})
}

// laneLost: a lane can't go on under the claim. Mostly another edge holds that. Where presence has it as this edge's all the same, the
// session was given up for lost while this edge could not say that it has it, and its lanes were ended (by package ownership); or the lane
// owes more than it can remember. Then the agent is asked to come back: its session goes on under a younger claim. It never blocks.
func (s *Session) laneLost() {
	s.node.background(func() {
		ctx, cancel := context.WithTimeout(s.node.ctx, s.node.cfg.Lease)
		defer cancel()
		missing, err := s.node.cfg.Presence.Sessions.Missing(ctx, s.node.Holder(), slices.Values([]presence.Claim{s.claim}))
		if err != nil || len(missing) > 0 {
			s.deposed()
			return
		}
		s.conn.Close(Reason{Cause: Drained, Text: "the session goes on under a new claim: reconnect"})
	})
}

func (s *Session) timedOut(to agora.Address, stream, frame string) {
	s.conn.Notify(Notice{Kind: NoticeFault, RequestID: frame, To: to.Peer(), Stream: stream,
		Err: agora.Errorf(agora.Timeout, "the deadline has passed")})
}

// usable returns an error when the session takes no verbs any more.
func (s *Session) usable() error {
	if _, ok := s.node.owner.Lease().Valid(); !ok {
		return &agora.Error{Code: agora.Unavailable, Message: "the edge has lost touch with the cluster", RetryAfter: time.Second}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return agora.Errorf(agora.Unavailable, "the session is over here")
	}
	return nil
}
