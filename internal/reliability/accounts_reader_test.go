//go:build chaos

package reliability

import (
	"fmt"
	"sync"
	"time"
)

// resumption is how a reader that comes back says how far it has come.
type resumption string

const (
	byPosition resumption = "position" // when it registers
	byJoin     resumption = "join"     // when it joins its rooms
	byAck      resumption = "ack"      // by acknowledging
	byNothing  resumption = "nothing"
)

// reader reads a mailbox, or rooms.
type reader struct {
	party
	how   resumption
	rooms []string

	joined map[string]bool   // rooms that it is in, on this connection
	stated map[string]uint64 // positions that were stated on this connection
	seen   map[string]uint64 // the highest position that has come on this connection

	mu       sync.Mutex // guards the fields below
	at       map[string]uint64
	accounts map[string]map[string]*account // by address, and who writes to it
	streams  map[string]*streamAccount      // by writer and name
	gaps     map[string]int                 // told, by address
	isBound  bool
	arrived  int
	marked   int
	gapsTold int
}

// account is what has arrived of a writer at an address.
type account struct {
	last   int // the highest number
	before int // the same of the writer's earlier sessions: what those were not receipted is said again in a new one
	epoch  int
	gaps   int // that the reader had been told of by then
}

// streamAccount is what has arrived of a stream.
type streamAccount struct {
	next int
	end  string // "end" or "abort"; empty while there was none
	gaps int
}

func newReader(b *books, id string, how resumption) *reader {
	r := &reader{
		party: party{books: b, id: id}, how: how,
		at: map[string]uint64{}, accounts: map[string]map[string]*account{}, streams: map[string]*streamAccount{}, gaps: map[string]int{},
	}
	r.role = r
	b.readers = append(b.readers, r)
	return r
}

// keep has the reader account for an address.
func (r *reader) keep(address string) { r.accounts[address] = map[string]*account{} }

func (r *reader) isThere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isBound
}

func (r *reader) account(address, writer string) *account {
	a := r.accounts[address][writer]
	if a == nil {
		a = &account{}
		r.accounts[address][writer] = a
	}
	return a
}

func (r *reader) hello() string {
	if r.how != byPosition {
		return ""
	}
	fields := fmt.Sprintf(`,"last_seq":%d`, r.at[r.id])
	for i, room := range r.rooms {
		fields += fmt.Sprintf(`%s%q:%d`, []string{`,"spaces":{`, ","}[min(i, 1)], room, r.at[room])
	}
	if len(r.rooms) > 0 {
		fields += "}"
	}
	return fields
}

func (r *reader) bound(_ heard, new bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined, r.stated, r.seen, r.isBound = map[string]bool{}, map[string]uint64{}, map[string]uint64{}, true
	if r.how == byPosition && r.sessions > 0 {
		r.stated[r.id] = r.at[r.id]
	}
	for _, room := range r.rooms {
		if new && r.how == byNothing { // it begins where the room is now
			r.gaps[room]++
		}
		r.join(room, new)
	}
}

func (r *reader) join(room string, new bool) {
	if at := r.at[room]; at > 0 && (r.how == byJoin || r.how == byPosition && new) {
		r.stated[room] = at
		r.tell(`{"type":"space.join","space":%q,"id":"j","last_seq":%d}`, room, at)
		return
	}
	r.tell(`{"type":"space.join","space":%q,"id":"j"}`, room)
}

func (r *reader) say(time.Time) {}

func (r *reader) hear(f heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	address := r.id
	if f.Space != "" {
		address = f.Space
	}
	switch f.Type {
	case "gap":
		r.gaps[address]++
		r.gapsTold++
		r.at[address] = max(r.at[address], f.ToSeq)
	case "space.joined":
		r.joined[f.Space] = true
	case "message":
		r.moves(address, f)
		if f.Stream {
			r.part(f)
		} else {
			r.arrives(r.account(address, f.Payload.W), f.Payload, f)
		}
	case "message_chunk", "message_end":
		r.moves(address, f)
		r.part(f)
	case "space.event":
		if r.how == byJoin && r.stated[address] > 0 && !r.joined[address] {
			return // what the answer to the join replays
		}
		r.moves(address, f)
		if f.Data.N > 0 { // else it is the space's own
			r.arrives(r.account(address, f.Data.W), f.Data, f)
		}
	case "error":
		switch {
		case f.Code == "STREAM_ABORTED" && f.From != "":
			r.moves(address, f)
			r.part(f)
		case f.Space != "": // a join that was refused for the moment
			r.cut = time.Now()
		}
	}
}

// moves takes the position of what has come: they grow, from what was stated on.
func (r *reader) moves(address string, f heard) {
	r.arrived++
	if f.Seq <= r.seen[address] || f.Seq <= r.stated[address] && f.Space == "" {
		r.books.fault("%s got position %d of %s behind %d, having stated %d: %s", r.id, f.Seq, address, r.seen[address], r.stated[address], f.Type)
	}
	r.seen[address], r.at[address] = f.Seq, max(r.at[address], f.Seq)
	if r.how == byAck && r.rnd.IntN(4) == 0 {
		r.tell(`{"type":"ack","seq":%d}`, f.Seq)
	}
}

// arrives holds a message or event against what has arrived before.
func (r *reader) arrives(a *account, b body, f heard) {
	if b.E != a.epoch {
		a.before, a.epoch = a.last, b.E
	}
	gaps := r.gaps[r.addressOf(f)]
	switch {
	case b.N == a.last+1:
	case b.N <= a.last:
		r.marked++
		if !f.Redelivered && b.N > a.before {
			r.books.fault("%s got %d of %s twice, without a mark, after %d, at %d", r.id, b.N, b.W, a.last, f.Seq)
		}
	case gaps == a.gaps:
		r.books.fault("%s got %d of %s after %d, at %d, and was told of no gap", r.id, b.N, b.W, a.last, f.Seq)
	}
	a.last, a.gaps = max(a.last, b.N), gaps
}

func (r *reader) addressOf(f heard) string {
	if f.Space != "" {
		return f.Space
	}
	return r.id
}

// part holds a part of a stream against what has arrived of it before.
func (r *reader) part(f heard) {
	name := f.From + "/" + f.StreamID
	s := r.streams[name]
	if s == nil {
		s = &streamAccount{}
		r.streams[name] = s
	}
	gaps := r.gaps[r.id]
	switch {
	case s.end != "" && f.Redelivered:
		r.marked++
	case s.end != "":
		r.books.fault("%s got a %s of stream %s behind its %s, at %d", r.id, f.Type, name, s.end, f.Seq)
	case f.Type == "error":
		s.end = "abort"
	case f.Index == nil:
		r.books.fault("%s got a %s of stream %s without an index", r.id, f.Type, name)
	case *f.Index < s.next && f.Redelivered:
		r.marked++
	case *f.Index < s.next:
		r.books.fault("%s got part %d of stream %s twice, without a mark, before %d, at %d", r.id, *f.Index, name, s.next, f.Seq)
	case *f.Index > s.next && gaps == s.gaps:
		r.books.fault("%s got part %d of stream %s, wants %d, and was told of no gap", r.id, *f.Index, name, s.next)
	default:
		s.next = *f.Index + 1
		if f.Type == "message_end" {
			s.end = "end"
		}
	}
	s.gaps = gaps
}

// lacks says what a writer was told to be stored, and has not arrived.
func (r *reader) lacks(w *writer) (all []string) {
	for address := range r.accounts {
		a := r.account(address, w.id)
		if want := w.receipted[address]; a.last < want && a.gaps == r.gaps[address] {
			all = append(all, fmt.Sprintf("%s has %d of %d of %s in %s", r.id, a.last, want, w.id, address))
		}
	}
	for name, over := range w.over {
		s := r.streams[w.id+"/"+name]
		switch {
		case over.to != r.id || s == nil && over.how != "end":
		case s == nil && r.gaps[r.id] > 0, s != nil && s.gaps < r.gaps[r.id]: // a gap may have taken it
		case over.lost && r.books.overflows:
		case s == nil, s.end == "", over.how == "end" && s.end != "end":
			all = append(all, fmt.Sprintf("%s has %+v of stream %s of %s, who was told of its %s", r.id, s, name, w.id, over.how))
		}
	}
	return all
}
