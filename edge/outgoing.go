package edge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// outgoing is what a session sends, and the receipts that it is given for that.
type outgoing struct {
	*binding
	making   lock.Mutex                   // held while lanes is made
	lanes    atomic.Pointer[relay.Sender] // nil until the agent sends something: see sender
	unclean  uint64                       // the highest epoch of its holders that ended without handing over
	blocked  atomic.Int32                 // verbs that wait for something of the edge's own: meanwhile that does not read the socket
	receipts receiptBox                   // cumulative receipts for this agent
	rights   rights                       // what the agent may say, and to whom
	aliases  aliases
}

// resume continues with the lanes of earlier holders. It comes before anything is sent.
func (o *outgoing) resume(lanes []presence.Lane, unclean uint64) {
	o.unclean = unclean
	if len(lanes) > 0 {
		o.lanes.Store(o.newSender(lanes))
	}
}

// sender returns the session's sender, which is made when something is asked of it for the
// first time: most agents listen, and a sender is as large as an inbox.
func (o *outgoing) sender() *relay.Sender {
	if s := o.lanes.Load(); s != nil {
		return s
	}
	o.making.Lock()
	defer o.making.Unlock()
	if o.lanes.Load() == nil {
		o.lanes.Store(o.newSender(nil))
	}
	return o.lanes.Load()
}

func (o *outgoing) newSender(lanes []presence.Lane) *relay.Sender {
	return o.node.relay.Sender(relay.SenderConfig{
		Claim: &o.claim, Principal: o.actor.Principal().Name, Dirty: o.unclean, Deposed: o.laneLost, Asker: o,
	}, lanes)
}

// heard has the sender hear of a message of the mailbox: see [relay.Sender.Heard]. An agent that has sent nothing gets
// no sender for what concerns only what it has sent.
func (o *outgoing) heard(m *agora.Message, dropped bool) (news bool) {
	if !relay.Concerns(m) || o.lanes.Load() == nil && m.Kind != agora.Receipt && m.Meta.Call == "" {
		return true
	}
	return o.sender().Heard(m, dropped)
}

// used returns the lanes that the session has used, with their open streams.
func (o *outgoing) used() []presence.Lane {
	if s := o.lanes.Load(); s != nil {
		return s.Lanes()
	}
	return nil
}

// held returns the bytes that the agent has sent and that are not stored yet.
func (o *outgoing) held() int {
	if s := o.lanes.Load(); s != nil {
		return s.Held()
	}
	return 0
}

// toldStored tells the agent that what it says again was stored before.
func (o *outgoing) toldStored(to agora.Address, c *Command) {
	if c.Told != nil || c.ID != "" {
		o.tell(c, Notice{Kind: NoticeReceipt, RequestID: c.ID, Tier: agora.Stored, To: to})
	}
}

// tell tells what became of a command to who waits for that, which is the connection where nobody else does.
func (o *outgoing) tell(c *Command, n Notice) {
	if c.Told != nil {
		c.Told(n)
	} else {
		o.conn.Notify(n)
	}
}

// laneLost: a lane can't go on under the claim. Mostly another edge holds that. Where presence has it as this edge's
// nevertheless, the session was given up for lost while this edge could not say that it has it, and its lanes were
// ended (by package ownership); or the lane owes more than it can remember. Then the agent is asked to come back: its
// session continues under a younger claim. It never blocks.
func (o *outgoing) laneLost() {
	o.node.background(func() {
		ctx, cancel := context.WithTimeout(o.node.ctx, o.node.cfg.Lease)
		defer cancel()
		missing, err := o.node.cfg.Presence.Sessions.Missing(ctx, o.node.Holder(), slices.Values([]presence.Claim{o.claim}))
		if err != nil || len(missing) > 0 {
			if s := o.node.sessions.under(o.address(), o.claim.Epoch); s != nil {
				owned{s}.Depose()
			} else {
				o.deposed()
			}
			return
		}
		o.conn.Close(Reason{Cause: Drained, Text: "the session goes on under a new claim: reconnect"})
	})
}

// spend takes a message from the sender's rate, and from its tenant's. Parts of
// an open stream wait for it, so that the socket is read no faster; everything
// else is refused over it. While the edge sheds the connection, it takes less.
func (o *outgoing) spend(ctx context.Context, m *agora.Message) error {
	wait, err := o.slot.Throttle(m.Part)
	if err == nil && wait > 0 {
		err = o.await(ctx, wait)
	}
	if err != nil {
		return err
	}
	q, n := &o.actor.quota, len(m.Body)
	if m.Part == agora.Chunk || m.Part.Ends() {
		err = o.await(ctx, q.Reserve(n))
	} else {
		err = q.Spend(n)
	}
	if err == nil {
		q.Count(n)
	}
	return err
}

// beside takes what the agent asks beside what it says to others, and is to be let in: it waits where that comes too
// fast.
func (o *outgoing) beside(ctx context.Context) error {
	return o.await(ctx, o.actor.quota.ReserveBeside(o.address(), 0))
}

// await has the socket read no further for a while.
func (o *outgoing) await(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	o.blocked.Add(1)
	defer o.blocked.Add(-1)
	if !pause.For(ctx, d) {
		return agora.AsError(ctx.Err())
	}
	return nil
}

// patient returns a context in which a verb may wait for the log, longer than an election takes. The socket is not read
// meanwhile, which is no fault of its agent.
func (o *outgoing) patient(ctx context.Context) (waiting context.Context, done func()) {
	o.blocked.Add(1)
	ctx, cancel := context.WithTimeout(ctx, o.node.cfg.Broker.Election())
	return ctx, func() {
		cancel()
		o.blocked.Add(-1)
	}
}

// receiptBox gathers cumulative receipts until the writer comes for them: of
// each lane, and of each stream, the last one says it all.
type receiptBox struct {
	mu  sync.Mutex // guards box
	box map[streamKey]Notice
}

func (b *receiptBox) add(r Notice, conn Conn) {
	b.mu.Lock()
	first := len(b.box) == 0
	if b.box == nil {
		b.box = map[streamKey]Notice{}
	}
	b.box[streamKey{r.To, r.Stream}] = r
	b.mu.Unlock()
	if first {
		conn.Wake()
	}
}

// TellReceipts queues the receipts that have gathered, as Pull does first: for a door whose Pull waits.
func (s *Session) TellReceipts() { s.out.receipts.flush(s.conn) }

func (b *receiptBox) flush(conn Conn) {
	b.mu.Lock()
	box := b.box
	b.box = nil
	b.mu.Unlock()
	for _, r := range box {
		conn.Notify(r)
	}
}

// mail stores a whole answer like that of an agent without a session: should the session end before that is told, it is
// the same when it is said again, wherever that is.
func (o *outgoing) mail(ctx context.Context, c *Command, m agora.Message) error {
	as := o.actor.actingAs(o.claim.Agent)
	as.key(c, &m)
	out, err := as.mail(ctx, m)
	if err == nil {
		c.Told(Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: out.Seq, To: m.To})
	}
	return err
}

// asker hears of one message of which more is to be done than to tell the connection.
type asker struct {
	out    *outgoing
	tell   func(Notice) // as of a Command, like the next
	failed func()
	span   *trace.Span // that ends with it
}

// Told tells what became of the message. It runs on the broker's goroutine.
func (a *asker) Told(t relay.Sent) {
	a.span.End(agora.AsError(t.Err))
	if t.Err != nil && a.failed != nil {
		a.failed()
	}
	switch n, ok := a.out.notice(&t); {
	case !ok:
	case a.tell != nil:
		a.tell(n)
	default:
		a.out.hand(n)
	}
}

// Told tells the agent what became of what it has sent. It runs on the broker's goroutine.
func (o *outgoing) Told(t relay.Sent) {
	if n, ok := o.notice(&t); ok {
		o.hand(n)
	}
}

// hand gives a notice to the connection: a cumulative receipt with the next that are written.
func (o *outgoing) hand(n Notice) {
	if n.Kind == NoticeReceipt && n.RequestID == "" {
		o.receipts.add(n, o.conn)
		return
	}
	o.conn.Notify(n)
}

// notice is what there is to tell.
func (o *outgoing) notice(t *relay.Sent) (Notice, bool) {
	if t.Err != nil {
		return Notice{Kind: NoticeFault, RequestID: t.Frame, To: t.To, N: t.N, Stream: t.Stream, Err: agora.AsError(t.Err)}, true
	}
	o.node.stats.sent.Add(1)
	r := Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: t.Seq, To: t.To}
	switch {
	case t.N > 0:
		r.N = t.N
	case t.Receipts&agora.Stored == 0:
		return r, false
	case t.Frame != "":
		r.RequestID = t.Frame
	case t.Indexed:
		r.Stream, r.Index = t.Stream, t.Index
	default:
		return r, false
	}
	return r, true
}
