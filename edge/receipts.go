package edge

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/relay"
)

// What receipts say.
const (
	statusStored    = "stored"
	statusDelivered = "delivered"
	statusAcked     = "acked"
)

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

func (b *receiptBox) flush(conn Conn) {
	b.mu.Lock()
	box := b.box
	b.box = nil
	b.mu.Unlock()
	for _, r := range box {
		conn.Notify(r)
	}
}

// owed is what this agent's edge still has to tell the senders of what it got.
type owed struct {
	mu     sync.Mutex // guards the fields below
	acked  []debt     // written, not yet known to have arrived
	toTell map[agora.AgentID]*account
}

// debts returns what is owed, which most agents never owe.
func (s *Session) debts() *owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == nil {
		s.owed = new(owed)
	}
	return s.owed
}

// debt is a message whose sender wants to know that it arrived.
type debt struct {
	from agora.AgentID
	seq  uint64
	what subject
}

// subject names a message in a receipt, as its sender named it.
type subject struct {
	id      string // the client's id of the frame
	n       uint64
	session string // of the sender, whose number n is
	stream  string
	index   uint32
}

// account is what is to be told to one sender. At most one receipt of it is
// under way; what comes meanwhile gathers.
type account struct {
	busy bool
	ids  []tiered
	n    map[tiered]uint64 // highest number, by session and status
	at   map[tiered]uint32 // highest index, by stream and status
}

type tiered struct{ name, status string }

// maxOwed bounds the receipts that wait for an acknowledgement: a client that never
// confirms anything owes its senders only the newest.
const maxOwed = 8192

func subjectOf(m *agora.Message) subject {
	switch {
	case m.N > 0:
		return subject{n: m.N, session: m.Session}
	case m.ID != "":
		return subject{id: clientID(m.ID)}
	case m.Indexed:
		return subject{stream: m.Stream, index: m.Index}
	}
	return subject{}
}

// tellReceipts tells senders that what they sent was written to the socket,
// and remembers who wants to know that it arrived.
func (s *Session) tellReceipts(written []Delivery, tier agora.Receipts) {
	for i := range written {
		m := written[i].Message
		if m == nil || m.Meta.Receipts == 0 || m.Kind == agora.Receipt {
			continue
		}
		what := subjectOf(m)
		if m.Meta.Receipts&tier != 0 {
			s.owe(m.From, what, statusDelivered)
		}
		if m.Meta.Receipts&agora.Acked != 0 {
			o := s.debts()
			o.mu.Lock()
			o.acked = append(o.acked, debt{m.From, m.Seq, what})
			if over := len(o.acked) - maxOwed; over > 0 {
				o.acked = o.acked[over:]
			}
			o.mu.Unlock()
		}
	}
}

// tellAcked tells senders that what they sent is known to have arrived.
func (s *Session) tellAcked() {
	s.mu.Lock()
	confirmed, o := s.confirmed, s.owed
	s.mu.Unlock()
	if o == nil {
		return
	}
	o.mu.Lock()
	var due []debt
	for len(o.acked) > 0 && o.acked[0].seq <= confirmed {
		due = append(due, o.acked[0])
		o.acked = o.acked[1:]
	}
	o.mu.Unlock()
	for _, d := range due {
		s.owe(d.from, d.what, statusAcked)
	}
}

// owe enters a receipt into its sender's account, and sends it unless one is under way.
func (s *Session) owe(to agora.AgentID, what subject, status string) {
	o := s.debts()
	o.mu.Lock()
	if o.toTell == nil {
		o.toTell = map[agora.AgentID]*account{}
	}
	a := o.toTell[to]
	if a == nil {
		a = &account{n: map[tiered]uint64{}, at: map[tiered]uint32{}}
		o.toTell[to] = a
	}
	switch {
	case what.n > 0:
		k := tiered{what.session, status}
		a.n[k] = max(a.n[k], what.n)
	case what.stream != "":
		k := tiered{what.stream, status}
		a.at[k] = max(a.at[k], what.index)
	case what.id != "":
		a.ids = append(a.ids, tiered{what.id, status})
	}
	busy := a.busy
	a.busy = true
	o.mu.Unlock()
	if !busy {
		s.pay(to, a)
	}
}

// pay sends what an account holds, and again what has gathered when that is stored.
func (s *Session) pay(to agora.AgentID, a *account) {
	o := s.debts()
	o.mu.Lock()
	due := a.take(s.claim.Agent)
	if len(due) == 0 {
		a.busy = false
		delete(o.toTell, to)
	}
	o.mu.Unlock()
	for i, m := range due {
		m.From, m.To = s.claim.Agent, agora.ToAgent(s.claim.Tenant, to)
		done := func(broker.Result) {}
		if i == len(due)-1 {
			done = func(broker.Result) { s.node.background(func() { s.pay(to, a) }) }
		}
		if err := s.sender().Send(s.node.ctx, m, relay.Options{}, done); err != nil {
			o.mu.Lock()
			delete(o.toTell, to) // nobody to tell, or nothing to tell it with: the sender asks by sending again
			o.mu.Unlock()
			return
		}
		s.seat.Stir()
	}
}

// take empties the account into receipts: the body of each is the frame's fields after its type. One of a number has the session whose
// number it is as its Stream.
func (a *account) take(self agora.AgentID) (due []agora.Message) {
	enter := func(session, fields string) {
		due = append(due, agora.Message{Kind: agora.Receipt, Stream: session, Body: []byte(fields)})
	}
	to := `"to":` + quote(string(self))
	for _, t := range a.ids {
		enter("", `"request_id":`+quote(t.name)+`,"status":"`+t.status+`",`+to)
	}
	for t, n := range a.n {
		enter(t.name, to+`,"n":`+strconv.FormatUint(n, 10)+`,"status":"`+t.status+`"`)
	}
	for t, index := range a.at {
		enter("", `"stream_id":`+quote(t.name)+`,"index":`+strconv.FormatUint(uint64(index), 10)+`,"status":"`+t.status+`",`+to)
	}
	a.ids = nil
	clear(a.n)
	clear(a.at)
	return due
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always marshals
	}
	return string(b)
}

// background runs f, which may block for round trips, and is waited for.
func (n *Node) background(f func()) {
	if n.ctx.Err() == nil {
		n.work.Go(f)
	}
}
