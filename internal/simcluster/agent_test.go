package simcluster

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// How an agent tells its frames apart.
type naming int

const (
	byNumber naming = iota // and sends again what has no receipt
	byIndex                // whole messages by id; sends again what has no receipt
	plainly                // sends nothing again
)

// How an agent says where it stands in its mailbox.
type reading int

const (
	byPosition reading = iota // names its last position when it returns
	byAck
	byPong
	byReturn // as of a downlink of events: comes back with its position, or without, and nothing else says where it stands
)

// agent is a client, and what it knows. The world's mu guards it.
type agent struct {
	w     *world
	id    agora.AgentID
	card  string // how it is called, by its card
	names naming
	reads reading
	wants agora.Receipts // of its connections

	d       *door // the connection that it has, or is making; nil when it is away
	ready   bool  // that one is welcomed
	token   string
	began   bool // it was welcomed once
	session int  // how many it has had
	opens   int  // sessions opened for it at edges, of the same agora session or another
	newest  int  // the youngest of them that has delivered

	lanes map[agora.Address]*lane
	boxes map[string]*box // its mailbox, under "", and the spaces that it is in
	past  []*box          // spaces that it was in
	deaf  bool            // answers no pings
	doubt bool            // of the lanes of its session
	lax   bool            // a failover lost what presence knew of it: positions may be older, marks be missing

	paced time.Duration // between two things that it says to one; 0: it says all at once
}

// box is a mailbox or a space as one agent got it.
type box struct {
	to    agora.Address
	from  uint64 // position after which it reads
	last  uint64
	seen  map[uint64]bool
	gaps  []span   // that it was told of
	came  []string // what came, and where and when
	acked uint64
	doubt bool // the agent said that it leaves and may not have heard the answer
}

type span struct{ from, to uint64 }

func (b *box) told(seq uint64) bool {
	for _, g := range b.gaps {
		if g.from <= seq && seq <= g.to {
			return true
		}
	}
	return false
}

// lane is what an agent says to one addressee in one session.
type lane struct {
	from    *agent
	to      agora.Address
	session int
	doubt   bool // presence had lost data, and an older session may have come back in place of this one: its receipts prove nothing
	made    []*part
	stored  int // by number: how many of made are known to be stored, or failed
	next    int // the one to write next
	pause   time.Time
	open    map[string]*stream
	streams int
	pad     int // bytes by which all that is said is longer than it need be
}

type stream struct {
	name  string
	kind  agora.Kind
	parts int
}

// part is one message.
type part struct {
	uid     int
	from    *agent
	lane    *lane
	session int
	ord     int // among all that its agent says to the addressee
	kind    agora.Kind
	part    agora.Part
	stream  string
	pos     int // in the stream
	id      string
	n       uint64
	asked   string // the request that it answers; empty for none

	said     int       // how often its agent has said it to an edge
	taken    bool      // a session took it
	written  bool      // it was given to a socket of its receiver
	refused  bool      // an edge refused it, or an earlier part of its stream; its agent may not have heard
	receipt  bool      // it was said to be stored
	told     time.Time // when
	failed   bool      // it was refused, and is not sent again
	owed     bool      // but for this once: its number was refused for the moment, and another would do as well
	answered bool
}

func (p *part) body() []byte {
	return append(strconv.AppendInt(nil, int64(p.uid), 10), bytes.Repeat([]byte(" "), p.lane.pad)...)
}

// data is the part as an event's.
func (p *part) data() []byte { return fmt.Appendf(nil, `{"uid":%d}`, p.uid) }

func (p *part) message() agora.Message {
	m := agora.Message{Kind: p.kind, Part: p.part, Stream: p.stream, N: p.n, ID: p.id, To: p.lane.to, Body: p.body()}
	if p.asked != "" && p.part <= agora.Start {
		m.Meta.Parent, m.Meta.Request = p.asked, p.asked
	}
	if p.from.names == byIndex && p.stream != "" {
		m.Indexed, m.Index = true, uint32(p.pos)
	}
	return m
}

func (p *part) requestID() string {
	if p.part == agora.Whole {
		return p.id
	}
	return ""
}

func (p *part) receipts() agora.Receipts {
	if p.from.names == byIndex && p.part == agora.Start {
		return agora.Stored
	}
	return 0
}

// connect makes the agent connect to an edge, giving up the connection that it has.
func (a *agent) connect(e *node, token bool, noticed time.Duration) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.d != nil {
		a.d.drop(noticed)
	}
	h := edge.Hello{Card: agora.Agent{ID: a.id, Name: a.card}, Conn: fmt.Sprint("c", a.w.count()), Receipts: a.wants}
	if token {
		h.Resume = a.token
	}
	if a.reads == byReturn {
		h.Proof = edge.ByReturn
	}
	if mail := a.boxes[""]; a.began && (a.reads == byPosition || a.reads == byReturn && a.opens%2 > 0) {
		h.LastSeq, h.HasLast, h.Spaces = mail.last, true, map[string]uint64{}
		for name, b := range a.boxes {
			if name != "" {
				h.Spaces[name] = b.last
			}
		}
	}
	a.ready = false
	a.d = a.w.open(a, e, h)
}

// lost notes that a connection has gone.
func (a *agent) lost(d *door) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.d == d {
		a.d, a.ready = nil, false
	}
}

// make has the agent say one more thing to an addressee.
func (a *agent) make(to agora.Address, what int) {
	l := a.lane(to)
	p := &part{from: a, lane: l, session: a.session, ord: a.w.ordinal(a, to), kind: agora.Kind(what & 1)}
	what >>= 1
	if to.IsSpace() {
		p.kind = agora.Event
	} else {
		l.shape(p, what)
	}
	p.uid = len(a.w.parts)
	a.w.parts = append(a.w.parts, p)
	switch {
	case a.names == byNumber:
		p.n = uint64(len(l.made) + 1)
	case a.names == byIndex && p.part == agora.Whole:
		p.id = fmt.Sprint("m", p.uid)
	}
	l.made = append(l.made, p)
	if a.d != nil {
		a.d.stir()
	}
}

// lane returns that of the agent's session to an addressee.
func (a *agent) lane(to agora.Address) *lane {
	l := a.lanes[to]
	if l == nil {
		l = &lane{from: a, to: to, session: a.session, doubt: a.doubt, open: map[string]*stream{}}
		a.lanes[to] = l
	}
	return l
}

// reply has the agent answer a request in a stream, and returns its parts.
func (a *agent) reply(q *agora.Message, chunks int) []*part {
	to := agora.ToAgent(agora.DefaultTenant, q.From)
	l, name := a.lane(to), fmt.Sprintf("%s-answer-%d", a.id, len(a.w.parts))
	var all []*part
	for pos := range chunks + 2 {
		p := &part{
			uid: len(a.w.parts), from: a, lane: l, session: a.session, ord: a.w.ordinal(a, to), kind: agora.Reply, part: agora.Chunk,
			stream: name, pos: pos, asked: q.ID,
		}
		switch pos {
		case 0:
			p.part = agora.Start
		case chunks + 1:
			p.part = agora.End
		}
		if a.names == byNumber {
			p.n = uint64(len(l.made) + 1)
		}
		a.w.parts, l.made, all = append(a.w.parts, p), append(l.made, p), append(all, p)
	}
	if a.d != nil {
		a.d.stir()
	}
	return all
}

// replyWhole has the agent answer a request in one message, and returns that.
func (a *agent) replyWhole(q *agora.Message) *part {
	to := agora.ToAgent(agora.DefaultTenant, q.From)
	l := a.lane(to)
	p := &part{uid: len(a.w.parts), from: a, lane: l, session: a.session, ord: a.w.ordinal(a, to), kind: agora.Reply, asked: q.ID}
	switch a.names {
	case byNumber:
		p.n = uint64(len(l.made) + 1)
	case byIndex:
		p.id = fmt.Sprint("m", p.uid)
	}
	a.w.parts, l.made = append(a.w.parts, p), append(l.made, p)
	if a.d != nil {
		a.d.stir()
	}
	return p
}

// shape makes p a part of a stream, or a whole message.
func (l *lane) shape(p *part, what int) {
	var s *stream
	for _, o := range l.open {
		if s == nil || o.name < s.name {
			s = o
		}
	}
	switch {
	case (s == nil || what%16 == 15) && what%3 > 0 && len(l.open) < 3:
		l.streams++
		s = &stream{name: fmt.Sprintf("%s-%d-%d", l.from.id, l.session, len(l.from.w.parts)), kind: p.kind}
		l.open[s.name] = s
		p.part = agora.Start
	case s != nil && what%5 > 0:
		p.part = []agora.Part{agora.Chunk, agora.Chunk, agora.Chunk, agora.Chunk, agora.Chunk, agora.Chunk, agora.End, agora.Cancel}[what/5%8]
	default:
		return
	}
	p.stream, p.pos, p.kind = s.name, s.parts, s.kind
	s.parts++
	if p.part.Ends() {
		delete(l.open, s.name)
	}
	if p.part == agora.Cancel {
		p.kind = agora.Request // whose stream it is, the session knows
	}
}

// push writes what there is to say.
func (a *agent) push(d *door) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.d != d || !a.ready {
		return
	}
	now := time.Now()
	for _, l := range a.lanes {
		for now.After(l.pause) && l.next < len(l.made) && (a.names == plainly || l.next < l.stored+32) {
			p := l.made[l.next]
			l.next++
			if p.failed && !p.owed || a.names == byIndex && p.answered || l.to.IsSpace() && a.boxes[l.to.Space] == nil {
				continue
			}
			p.owed = false
			p.said++
			d.tell(upward{part: p})
			if a.paced > 0 {
				l.pause = now.Add(a.paced)
				time.AfterFunc(a.paced+1, d.stir)
			}
		}
		l.back0()
	}
}

// over reports whether nothing of a part is to be sent any more.
func (p *part) over() bool { return p.failed && !p.owed || p.answered }

// back has a lane begin again with the first part that is not known to be stored.
func (l *lane) back() {
	for l.stored < len(l.made) && l.made[l.stored].over() {
		l.stored++
	}
	if l.from.names != plainly {
		l.next = l.stored
	}
}

// resume is what an agent does with its lanes after it was welcomed.
func (a *agent) resume(again bool) {
	if !again { // what has no receipt is lost with its session
		a.session++
		a.doubt = false
		a.lanes = map[agora.Address]*lane{}
		for name, b := range a.boxes {
			if name != "" {
				a.past = append(a.past, b)
				delete(a.boxes, name)
			}
		}
		return
	}
	for _, l := range a.lanes {
		l.doubt = a.doubt
		l.pause = time.Time{}
		l.back()
	}
}

// fault takes a refusal.
func (a *agent) fault(d *door, n *edge.Notice) {
	l := a.lanes[n.To]
	if l == nil {
		return // of a session that is over
	}
	temporary := n.Err.Passes() // any other error uses the number up
	switch {
	case n.N > 0 && temporary:
		if int(n.N) <= len(l.made) && l.made[n.N-1].failed {
			l.made[n.N-1].owed, l.stored = true, min(l.stored, int(n.N)-1)
		}
		l.pause = time.Now().Add(30 * time.Millisecond)
		time.AfterFunc(31*time.Millisecond, d.stir)
		l.back()
	case n.N > 0 && int(n.N) <= len(l.made):
		p := l.made[n.N-1]
		p.failed = true
		l.fail(p.stream, p.pos)
	case n.Stream != "":
		l.fail(n.Stream, 0)
	case n.RequestID != "":
		for _, p := range l.made {
			if p.id == n.RequestID {
				p.failed, p.answered = true, true
			}
		}
	}
	l.back0()
}

// back0 moves what is known to be stored on, without beginning again.
func (l *lane) back0() {
	for l.stored < len(l.made) && l.made[l.stored].over() {
		l.stored++
	}
}

// fail gives a stream up from a part on.
func (l *lane) fail(name string, from int) {
	if name == "" {
		return
	}
	delete(l.open, name)
	for _, p := range l.made {
		if p.stream == name && p.pos >= from && !p.receipt {
			p.failed = true
		}
	}
}

// cancelled gives a stream up that its receiver has cancelled. Numbers of it that were said come again nevertheless:
// they may have been refused for the moment, and nothing behind them is taken before.
func (l *lane) cancelled(name string) {
	l.fail(name, 0)
	for _, p := range l.made[min(l.stored, len(l.made)):] {
		p.owed = p.owed || p.failed && p.stream == name && p.n > 0 && p.said > 0 && !p.receipt
	}
	l.back()
}

// stored takes a receipt.
func (a *agent) stored(n *edge.Notice) {
	l := a.lanes[n.To]
	if l == nil {
		return
	}
	for i, p := range l.made {
		is := n.N > 0 && i < int(n.N) ||
			n.N == 0 && n.RequestID != "" && p.id == n.RequestID ||
			n.N == 0 && n.RequestID == "" && n.Stream != "" && p.stream == n.Stream && p.pos <= int(n.Index)
		if is && !p.failed {
			if !p.receipt {
				p.told = time.Now()
			}
			p.receipt, p.answered = true, true
		}
	}
	l.back0()
}
