package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/presence"
)

// Hello is what a connection says of itself when it binds to an id.
type Hello struct {
	Card      agora.Agent
	Conn      string            // connection id
	Resume    string            // resume token of the running session; may be empty
	LastSeq   uint64            // last position that the client has, where HasLast; of one that was never delivered a gap is told, and delivery continues behind what is known to have arrived
	HasLast   bool              //
	Lives     bool              // it is the process that was here before, as its door can tell without the token: it continues with what it was saying
	Spaces    map[string]uint64 // the same for spaces, by name
	Receipts  agora.Receipts    // wanted for everything that the connection sends
	Heartbeat bool              // it knows agent.heartbeat
	Numbers   bool              // its client may number what it sends, and wants to hear where it continues (Welcome.Next)
	Proof     Proof             // of what has arrived
	MaxFrame  int               // bytes of a frame that the connection takes: in the place of what would come in a larger one a gap is delivered, and its sender told; 0 for any
	Admission Admission         // of the connection; the zero one where it is never shed

	// Slow returns the senders whose streams the connection does not keep up with, though it does with what others
	// send: they alone are slowed. It must not block; nil where all that comes is written in one order.
	Slow func() []agora.AgentID
	// Dialled is the address HOST:PORT at which the edge has dialled the agent, for a connection that it has made;
	// empty for one that the agent has. No other agent of the tenant has that address while the session lasts, and
	// other edges dial it when this one is gone: see [Adopter].
	Dialled string
	// Names are those of what Dialled reaches ([dial.Dialer.Names]): no other agent has any of them, whatever its
	// tenant.
	Names []string

	orphan *Orphan // to go on with; nil for a session like any
}

// Welcome is the answer to a Hello.
type Welcome struct {
	ResumeToken string        // for the session from now on
	LastSeq     uint64        // position after which delivery continues
	Heartbeat   time.Duration // how often the connection must give a sign of life
	Resumed     bool          // an earlier session continues with all of it: its streams, spaces and numbering
	Expires     time.Time     // when the credentials end, and the connection with them; zero for never
	// Next is, where Resumed and Hello.Numbers, the number behind the highest that the agent is known to have used
	// towards each of at most 16 addressees.
	Next map[agora.Address]uint64
}

// nextWait is how long Open waits for the log to tell Welcome.Next.
const nextWait = time.Second

// Open binds a connection to an id and returns its session, which is silent until Begin. It claims the id first: an
// incumbent is probed, past holders hand over or their lease runs out, and while presence gathers again what it has
// lost, a new id waits: so it may take as long as a lease (10 s). Errors: AGENT_EXISTS, also where another agent has
// h.Dialled, FORBIDDEN, UNAVAILABLE, INVALID_REQUEST for a wrong resume token or an address that is none. On success
// the caller owes a call of Closed.
func (a *Actor) Open(ctx context.Context, h Hello, conn Conn) (*Session, Welcome, error) {
	n := a.node
	if err := a.Check(); err != nil {
		return nil, Welcome{}, err
	}
	who := a.Principal()
	if err := n.limits.checkCard(&h.Card); err != nil {
		return nil, Welcome{}, err
	}
	if err := a.mayBe(h.Card.ID); err != nil {
		return nil, Welcome{}, err
	}
	if err := a.quota.SpendBeside(a.as(h.Card.ID), h.Card.Size()); err != nil && !a.Principal().link && h.orphan == nil {
		return nil, Welcome{}, err
	}
	if err := n.Ready(); err != nil {
		e := agora.AsError(err)
		e.RetryAfter = time.Second
		return nil, Welcome{}, e
	}
	req := presence.ClaimRequest{
		Tenant: who.Tenant, Agent: h.Card.ID, Principal: who.Name, Holder: n.owner.Holder(),
		Conn: h.Conn, Session: rand.Text()[:16], Token: rand.Text(), Card: h.Card,
	}
	req.ResumeSession, req.Resume = parseResumeToken(h.Resume)
	req.Card.RegisteredAt = n.cfg.Broker.Now()
	if err := a.dialled(&h, &req); err != nil {
		return nil, Welcome{}, err
	}
	arrival := n.owner.Arrive(agora.ToAgent(req.Tenant, req.Agent))
	defer arrival.Done()
	claim, err := n.owner.Claim(ctx, &req, arrival)
	if err != nil {
		return nil, Welcome{}, err
	}
	o, err := n.beginSession(ctx, a, h, req, claim, conn, arrival)
	if err != nil {
		n.owner.Return(claim)
		return nil, Welcome{}, agora.AsError(err)
	}
	if !claim.Resumed {
		n.owner.Announce(claim, agora.Online)
	}
	n.stats.sessions.Add(1)
	o.began(o.after)
	var next map[agora.Address]uint64
	if sender := o.out.lanes.Load(); h.Numbers && claim.Resumed && !o.anew && sender != nil {
		wait, cancel := context.WithTimeout(ctx, nextWait)
		next = sender.NextNumbers(wait)
		cancel()
	}
	return o.Session, Welcome{
		Next: next, ResumeToken: resumeToken(o.claim.Session, req.Token), LastSeq: o.after, Heartbeat: n.cfg.Heartbeat,
		Resumed: claim.Resumed && !o.anew, Expires: o.Expires(),
	}, nil
}

// beginSession begins the session of a claim, once nobody else holds anything of it.
func (n *Node) beginSession(ctx context.Context, a *Actor, h Hello, req presence.ClaimRequest, c presence.Claim, conn Conn, arrival *ownership.Arrival) (*opening, error) {
	if err := n.owner.AwaitHandover(ctx, c); err != nil {
		return nil, err
	}
	life := n.cfg.Broker.Life()
	told := n.owner.Asserted()
	rec, err := n.cfg.Presence.Sessions.Begin(ctx, c)
	if err != nil {
		return nil, err
	}
	n.keepOpening(req, c, &rec)
	anew := c.Resumed && h.Resume == "" && !h.Lives && h.Dialled == "" && h.orphan == nil && !a.Principal().link
	if anew {
		if c, err = n.owner.Anew(ctx, c, &rec, req.Session); err != nil {
			return nil, err
		}
		n.keepOpening(req, c, &rec)
	}
	o := n.newOpening(a, h, req, c, conn, rec)
	o.anew = anew
	if err := o.openInbox(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(o.placeSpaces(ctx), o.recallCard(ctx)); err != nil {
		o.mailbox.inbox.Close()
		return nil, err
	}
	o.start()
	s := o.Session
	if c.Dialled && rec.Dial != nil {
		n.dials.put(s, *rec.Dial)
	}
	n.limits.usage.Add(admission.Bytes, s.owner(), s.profile.now().held())
	inTime := n.sessions.add(s)
	n.owner.Here(s.address())
	if h.HasLast && o.after > rec.Position.Cursor {
		s.receiptsOwed().arrivedUpTo(rec.Position.Cursor, o.after)
	}
	s.revalidate()                                                 // what was taken back before is not looked for again
	if n.cfg.Broker.Life() != life || n.owner.Asserted() != told { // the claims may have been looked after before this one stood among them
		if err := n.owner.Reconcile(ctx, owned{s}); err != nil {
			owned{s}.Depose()
		}
	}
	if arrival.Superseded() {
		owned{s}.Depose()
	}
	if !inTime {
		conn.Close(shuttingDown)
	}
	return o, nil
}

// keepOpening has the node remember a resumed session that has begun in presence and is about to open, or fails to: no
// other edge does any more. Once it is open it stands among the node's sessions.
func (n *Node) keepOpening(req presence.ClaimRequest, c presence.Claim, rec *presence.Record) {
	if !c.Resumed {
		return
	}
	req.Session, req.Card, req.Dial = c.Session, rec.Card, rec.Dial
	n.owner.Gone(presence.Held{Claim: c, Request: req, Position: rec.Position, Spaces: rec.Spaces, Lanes: rec.Lanes, Away: n.cfg.Presence.Grace()})
}

// Begin lets deliveries flow: the door has queued its answer to the Hello.
func (s *Session) Begin() {
	s.keepalive.beaten = agora.Ticks()
	s.mailbox.begun.Store(true)
	s.rearm(false, 0)
	s.conn.Wake()
}

// Linked returns an actor that brings agents of a link here: its sessions are those of agents that are elsewhere. No
// rules bind it, and its credentials don't end. Each of its sessions makes room, at once, for the one who opens or
// registers its id here, and for the session of an older link: see [presence.Link.Principal]. Open returns AGENT_EXISTS
// where somebody has the id here, or is to find its mail under it.
func (n *Node) Linked(l presence.Link) *Actor {
	return n.actor(&Principal{Name: l.Principal(), Tenant: l.Tenant, Any: true, link: true})
}

// LetIn is [Node.Admit] for a connection whose peer has proven by no credentials who it is, and speaks as the actor. It
// has arrived already, as its permit says. RATE_LIMITED, UNAVAILABLE. On success the caller owes a call of Release,
// which releases the permit as well.
func (a *Actor) LetIn(arrived *admission.Permit) (Admission, error) {
	slot, err := a.node.limits.Shedder.Acquire()
	if err == nil {
		if err = a.countConnection(arrived, slot); err == nil {
			return Admission{Actor: a, slot: slot, permit: arrived}, nil
		}
		slot.Release()
	}
	return Admission{}, err
}
