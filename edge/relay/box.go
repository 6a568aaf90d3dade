package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/approval"
)

// boxes is what a session's sender knows of the boxes of calls that its agent was asked. The lock of its laneSet guards
// it.
type boxes struct {
	asked    map[streamKey][]*box // by peer and request id; those with one id in the order in which they came
	streams  map[streamKey]*box   // by peer and the stream of the answer
	all      map[string]*box      // by name
	answered []*box               // the oldest first
	listed   bool                 // presence was asked what is open
}

// box is one answer box.
type box struct {
	at      agora.Address
	request string
	streams string // the request's own stream, or what it is called if it is one: nothing tells that of one that presence has listed; empty where it is whole

	whole   bool // its answer is no stream
	decided bool // that was a decision
	cut     bool // that stream was aborted, or the agent has cancelled it

	state     boxState
	stream    string // of the answer, once it has begun
	inherited bool   // by an earlier holder of the session: it may have ended
	n         uint64 // number and id of the first part of that
	id        string
	since     time.Time // when it was over; zero while it is not
}

const (
	answeredFor = time.Minute // how long an answered box is kept in mind: its answer may be said again by who lacks the receipt
	maxBoxes    = 16384       // kept in mind
	boxRoom     = 4 << 20     // bytes of an answer not read by its caller from which on the writer is slowed
	boxLook     = boxRoom / 8 // bytes written between two looks
	boxPause    = time.Second // between two records of an answer that is not read
	boxMost     = 4 * boxRoom // not read, then the answer is given up
)

func newBoxes() *boxes {
	return &boxes{asked: map[streamKey][]*box{}, streams: map[streamKey]*box{}, all: map[string]*box{}}
}

// add adds the box of a call that the agent was asked, unless it is known.
func (b *boxes) add(peer agora.Address, request, name, streams string) {
	if b.all[name] != nil {
		return
	}
	b.tidy()
	x := &box{at: agora.ToBox(peer.Tenant, name, peer.Agent), request: request, streams: streams, whole: approval.IsBox(name)}
	b.all[name] = x
	k := streamKey{peer, request}
	b.asked[k] = append(b.asked[k], x)
}

// tidy forgets boxes that were answered long ago, and some where they are too many.
func (b *boxes) tidy() {
	for len(b.answered) > 0 && (time.Since(b.answered[0].since) > answeredFor || len(b.all) >= maxBoxes) {
		b.drop(b.answered[0])
	}
	for _, x := range b.all {
		if len(b.all) < maxBoxes {
			break
		}
		b.listed = false // presence still knows of it
		b.drop(x)
	}
}

func (b *boxes) drop(x *box) {
	peer := x.at.Peer()
	delete(b.all, x.at.Space)
	k := streamKey{peer, x.request}
	b.asked[k] = without(b.asked[k], x)
	if len(b.asked[k]) == 0 {
		delete(b.asked, k)
	}
	if k := (streamKey{peer, x.stream}); b.streams[k] == x {
		delete(b.streams, k)
	}
	b.answered = without(b.answered, x)
}

func without(all []*box, x *box) []*box {
	for i := range all {
		if all[i] == x {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}

// resume continues with an answer that an earlier holder of the session has begun.
func (b *boxes) resume(to agora.Address, stream string) {
	x := b.all[to.Space]
	if x == nil {
		x = &box{at: to}
		b.all[to.Space] = x
	}
	b.hears(x, answerSaid)
	x.inherited, x.stream = true, stream
	b.streams[streamKey{to.Peer(), stream}] = x
}

// streamed returns the box of the call whose request is an open stream of a peer's, the youngest one of that name; nil
// for none.
func (b *boxes) streamed(peer agora.Address, stream string) *box {
	for _, x := range slices.Backward(b.asked[streamKey{peer, stream}]) {
		if x.streams == stream && !x.cut {
			return x
		}
	}
	return nil
}

// toCancel returns the box to which a cancel goes that names a stream of a peer's, and whether that is known for sure:
// that of the answer under this name, unless that has ended, or may have as an earlier holder of the session has begun
// it, and a request of that name is open. nil for none.
func (b *boxes) toCancel(peer agora.Address, stream string) (x *box, found bool) {
	x = b.streams[streamKey{peer, stream}]
	sure := x != nil && x.state != boxOver && !x.inherited
	if request := b.streamed(peer, stream); request != nil && !sure {
		return request, true
	}
	if x == nil {
		return nil, false
	}
	b.hears(x, answerEndSaid)
	return x, !x.inherited
}

// route is [Sender.Route] by what is known here.
func (b *boxes) route(m *agora.Message) (to agora.Address, found bool) {
	if b == nil {
		return m.To, false
	}
	if m.Part == agora.Cancel {
		x, found := b.toCancel(m.To, m.Stream)
		if x == nil {
			return m.To, false
		}
		return x.at, found
	}
	if m.Part != agora.Whole {
		x := b.streams[streamKey{m.To, m.Stream}]
		if x != nil && (m.Part != agora.Start || x.state == boxRefused || x.state == boxAnswered || x.takes(m)) { // else another answer begins under a name that was used before
			switch {
			case m.Part.Ends():
				b.hears(x, answerEndSaid)
			case m.Part == agora.Start && x.state.open(): // it was refused for the moment, and comes again
				b.answers(x, m)
			}
			return x.at, true
		}
	}
	if m.Part > agora.Start {
		return m.To, false
	}
	x, found := b.answerFor(m)
	if x == nil {
		if m.Part == agora.Start { // its parts follow it: the box's answer of this name is over, or never began
			delete(b.streams, streamKey{m.To, m.Stream})
		}
		return m.To, found
	}
	b.answers(x, m)
	if m.Part == agora.Start {
		b.streams[streamKey{m.To, m.Stream}] = x
	}
	return x.at, true
}

// answers notes that a message is the answer of a box, or the start of it.
func (b *boxes) answers(x *box, m *agora.Message) {
	b.hears(x, answerSaid)
	x.n, x.id, x.stream = m.N, m.ID, ""
	if m.Part == agora.Start {
		x.stream = m.Stream
	}
}

// hears moves a box on by an event. One that is over thereby is forgotten after a while.
func (b *boxes) hears(x *box, e boxEvent) {
	was := x.state
	if x.state = boxNext[was][e]; x.state == boxOver && was != boxOver {
		x.since = time.Now()
		b.answered = append(b.answered, x)
	}
}

// answerFor returns the box that a reply answers: the first one of its request that has no answer, or has this one. A
// reply that names no request is that to the one that its stream is called by, which it then names; else to the only
// open one of its peer. found tells that the request is known.
func (b *boxes) answerFor(m *agora.Message) (x *box, found bool) {
	name := cmp.Or(m.Meta.Parent, m.Stream)
	of := b.asked[streamKey{m.To, name}]
	for _, x := range of {
		if x.takes(m) {
			m.Meta.Parent = name
			return x, true
		}
	}
	if m.Meta.Parent == "" {
		return b.only(m)
	}
	return nil, len(of) > 0
}

func (b *boxes) only(m *agora.Message) (*box, bool) {
	var only *box
	for _, x := range b.all {
		if x.at.Peer() != m.To || !x.takes(m) {
			continue
		}
		if only != nil {
			return nil, true
		}
		only = x
	}
	return only, only != nil
}

// missed notes that the words may be lost by which calls were ended.
func (b *boxes) missed() {
	for _, x := range b.all {
		if !x.whole {
			b.hears(x, answerDoubted)
		}
	}
}

// unsure returns the box that a message would answer, if that may be nobody's any more; nil for none.
func (b *boxes) unsure(m *agora.Message) *box {
	if b == nil || m.Kind != agora.Reply || m.Part > agora.Start {
		return nil
	}
	x := b.streams[streamKey{m.To, m.Stream}] // whose start comes again
	if x == nil || m.Part == agora.Whole || x.state != boxDoubted {
		x, _ = b.answerFor(m)
	}
	if x != nil && x.state == boxDoubted {
		return x
	}
	return nil
}

// takes reports whether a reply may be the box's answer: it has none yet, or this one, said again, and is no stream
// where the answer has to be whole. Nobody answers a request whose stream was given up: a later one may have its name.
func (x *box) takes(m *agora.Message) bool {
	if x.whole && m.Part != agora.Whole {
		return false
	}
	return x.state.open() && !x.cut || m.N > 0 && m.N == x.n || m.ID != "" && m.ID == x.id
}

// settle notes what became of a part of an answer.
func (b *boxes) settle(to agora.Address, m agora.Part, err error) {
	x := b.all[to.Space]
	switch {
	case x == nil:
	case err != nil && m <= agora.Start && agora.AsError(err).Code != agora.StreamAborted:
		b.hears(x, answerRefused)
	case err == nil && (m == agora.Whole || m.Ends()):
		b.hears(x, answerStored)
	}
}

// giveUp is [Sender.NotAsked]; isOpen says which streams are.
func (b *boxes) giveUp(peer agora.Address, name string, isOpen func(streamKey) bool) (to agora.Address, stream string, open, tell bool) {
	to = agora.ToBox(peer.Tenant, name, peer.Agent)
	x := b.all[name]
	if x == nil { // it was asked before its session came here
		b.tidy()
		x = &box{at: to}
		b.all[name] = x
	}
	if x.state == boxOver {
		return to, "", false, false
	}
	open = x.state.answered() && x.stream != "" && isOpen(streamKey{x.at, x.stream})
	stream = x.stream // of which is dropped in silence what its agent still says
	if !open {
		stream = ""
		x.n, x.id = 0, "" // it takes nothing more, though presence may list it still
	}
	b.hears(x, answerGivenUp)
	return x.at, stream, open, !x.cut
}

// boxState is how far the answer of a box has come.
type boxState uint8

const (
	boxAwaits   boxState = iota // no answer has been said, or what was is refused together with its end: any may come
	boxDoubted                  // as boxAwaits, but the word that nobody waits for the answer may have been lost: presence is asked before one is routed
	boxRefused                  // the answer, or its start, was refused for the moment: it may come again, as its stream or as another
	boxAnswered                 // the answer, or its start, was said, and its end was not
	boxEnding                   // the end of the answer was said, though that may not be stored yet
	boxOver                     // the answer is stored, or nobody waits for it: nothing but what was said before goes there
	boxStates
)

// boxEvent is what a box hears of its answer.
type boxEvent uint8

const (
	answerSaid      boxEvent = iota // it, or its start, has been routed into the box
	answerEndSaid                   // a part that ends it has been routed, or its stream is cancelled
	answerRefused                   // it, or its start, was not stored
	answerStored                    // it, or the part that ends it, is stored
	answerDoubted                   // messages to the agent are lost, among them perhaps the word that nobody waits
	answerWaitedFor                 // presence says that somebody waits
	answerGivenUp                   // nobody waits for it
	boxEvents
)

// boxNext is the life of a box: what each event makes of it.
var boxNext = [boxStates][boxEvents]boxState{
	//           said         end said    refused     stored   doubted      waited for   given up
	boxAwaits:   {boxAnswered, boxAwaits, boxAwaits, boxOver, boxDoubted, boxAwaits, boxOver},
	boxDoubted:  {boxAnswered, boxDoubted, boxDoubted, boxOver, boxDoubted, boxAwaits, boxOver},
	boxRefused:  {boxAnswered, boxAwaits, boxRefused, boxOver, boxDoubted, boxRefused, boxOver},
	boxAnswered: {boxAnswered, boxEnding, boxRefused, boxOver, boxAnswered, boxAnswered, boxOver},
	boxEnding:   {boxAnswered, boxEnding, boxAwaits, boxOver, boxEnding, boxEnding, boxOver},
	boxOver:     {boxOver, boxOver, boxOver, boxOver, boxOver, boxOver, boxOver},
}

func (s boxState) String() string {
	return [...]string{"awaits", "doubted", "refused", "answered", "ending", "over"}[s]
}

// open reports whether any answer may come.
func (s boxState) open() bool { return s == boxAwaits || s == boxDoubted || s == boxRefused }

// answered reports whether an answer was said that may be under way still.
func (s boxState) answered() bool { return s == boxAnswered || s == boxEnding }
