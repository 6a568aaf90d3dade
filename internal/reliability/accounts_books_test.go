//go:build chaos

package reliability

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// books are what everybody has said and was told of it, and what has arrived.
type books struct {
	t       testing.TB
	began   time.Time
	writers []*writer
	readers []*reader

	overflows bool // mailboxes do: where presence loses a session nobody finds its streams then

	quiet   atomic.Bool // nothing new is said
	over    atomic.Bool
	running sync.WaitGroup

	mu     sync.Mutex // guards the field below
	faults []string
}

// openBooks starts agents that write to and read from each other by the edges at urls.
func openBooks(t testing.TB, urls []string, seed uint64) *books {
	b := &books{t: t, began: time.Now()}
	t.Cleanup(b.end)
	rooms := []string{"room-a", "room-b"}
	var boxes []string
	for i := range 2 {
		for _, how := range []resumption{byPosition, byAck, byNothing} {
			r := newReader(b, fmt.Sprintf("reads-%s-%d", how, i), how)
			r.keep(r.id)
			boxes = append(boxes, r.id)
		}
		for _, how := range []resumption{byPosition, byJoin, byNothing} {
			r := newReader(b, fmt.Sprintf("member-%s-%d", how, i), how)
			r.rooms = rooms
			for _, room := range rooms {
				r.keep(room)
			}
		}
	}
	for i := range 3 {
		newWriter(b, fmt.Sprintf("ids-%d", i), boxes, &byID{})
		newWriter(b, fmt.Sprintf("numbers-%d", i), boxes, &byNumber{})
		newWriter(b, fmt.Sprintf("streams-%d", i), boxes, &byIndex{})
		newWriter(b, fmt.Sprintf("publisher-%d", i), rooms, &byID{rooms: true})
	}
	var all []*party
	for _, r := range b.readers {
		all = append(all, &r.party)
	}
	for _, w := range b.writers {
		all = append(all, &w.party)
	}
	for i, p := range all {
		p.urls, p.rnd = urls, rand.New(rand.NewPCG(seed, uint64(i+1)))
	}
	for _, r := range b.readers {
		b.running.Go(r.run)
		await.True(t, r.id+" is there", r.isThere)
	}
	for _, w := range b.writers {
		b.running.Go(w.run)
	}
	return b
}

// fault notes what is wrong.
func (b *books) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) < 20 {
		b.faults = append(b.faults, fmt.Sprintf("%5.1f s: ", time.Since(b.began).Seconds())+fmt.Sprintf(format, args...))
	}
}

// failed reports whether something is wrong.
func (b *books) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.faults) > 0
}

// close has nobody say anything new, waits until the accounts balance, and fails the test where they don't.
func (b *books) close() {
	b.t.Helper()
	b.quiet.Store(true)
	var left []string
	balanced := await.Within(await.Long, func() bool {
		left = b.missing()
		return len(left) == 0 || b.failed()
	})
	if !balanced {
		b.t.Errorf("%d accounts don't balance:\n%s", len(left), strings.Join(left[:min(20, len(left))], "\n"))
	}
	b.end()
	for _, f := range b.faults {
		b.t.Error(f)
	}
	arrived, marked, given, gaps := 0, 0, 0, 0
	for _, r := range b.readers {
		arrived, marked, gaps = arrived+r.arrived, marked+r.marked, gaps+r.gapsTold
	}
	for _, w := range b.writers {
		given += w.given
	}
	b.t.Logf("%d arrived, %d came again and were marked, %d gaps were told, %d streams were given up", arrived, marked, gaps, given)
	if arrived < 1000 {
		b.t.Errorf("only %d messages, parts and events have arrived", arrived)
	}
}

// end has everybody go. Idempotent.
func (b *books) end() {
	b.over.Store(true)
	b.running.Wait()
}

// missing says what was receipted and has not arrived, which streams have no end, and what has neither a receipt nor an
// error yet.
func (b *books) missing() (all []string) {
	for _, w := range b.writers {
		w.mu.Lock()
		if w.busy {
			all = append(all, w.id+" waits for receipts")
		}
		for _, r := range b.readers {
			r.mu.Lock()
			all = append(all, r.lacks(w)...)
			r.mu.Unlock()
		}
		w.mu.Unlock()
	}
	return all
}

// party is an agent whose socket is cut at random, and which comes back at some edge. Its methods are for its own
// goroutine.
type party struct {
	books *books
	id    string
	urls  []string
	rnd   *rand.Rand
	role  role

	token string
	conn  *agoratest.Client
	cut   time.Time // when its socket is cut
	back  time.Time // when it tries to connect

	sessions int // begun so far
}

// role is what a party does.
type role interface {
	hello() string           // what it states when it registers, beside its id: more fields of the frame
	bound(f heard, new bool) // it is registered; new says that its session is another one than before
	hear(f heard)            // something has come
	say(now time.Time)       // it may send something
}

// body is what is said: its writer, its number among what that says to an address, from one on, and how many sessions
// the writer had begun by then.
type body struct {
	W string `json:"w"`
	N int    `json:"n"`
	E int    `json:"e"`
}

// heard is what a frame says.
type heard struct {
	Type, Code, From, To, Space, Status string
	StreamID                            string `json:"stream_id"`
	RequestID                           string `json:"request_id"`
	Token                               string `json:"resume_token"`
	Resumed, Redelivered, Stream        bool
	Seq, N                              uint64
	ToSeq                               uint64 `json:"to_seq"`
	Index                               *int
	Payload, Data                       body
	Message                             json.RawMessage // an error's text, or an event's own
}

// run connects, says and hears, until all is over.
func (p *party) run() {
	for !p.books.over.Load() {
		if p.conn == nil {
			p.connect()
			continue
		}
		p.role.say(time.Now())
		f, ok := p.conn.Next(2 * time.Millisecond)
		for ; ok; f, ok = p.conn.Next(0) {
			p.hear(f)
		}
		if p.conn.Gone() != nil || time.Now().After(p.cut) {
			p.leave(500 * time.Millisecond)
		}
	}
	if p.conn != nil {
		p.leave(0)
	}
}

// leave cuts the socket, hears what has come by then, as its pings are answered, and stays away for a while.
func (p *party) leave(away time.Duration) {
	p.conn.Drop()
	for f, ok := p.conn.Next(0); ok; f, ok = p.conn.Next(0) {
		p.hear(f)
	}
	p.conn = nil
	p.back = time.Now().Add(p.about(away))
}

// about returns a time that is as long in the mean.
func (p *party) about(d time.Duration) time.Duration {
	return time.Duration(p.rnd.ExpFloat64() * float64(d))
}

func (p *party) connect() {
	if wait := time.Until(p.back); wait > 0 {
		<-time.After(min(wait, 20*time.Millisecond)) // all may be over
		return
	}
	p.back = time.Now().Add(200 * time.Millisecond)
	conn, _, err := agoratest.TryConnect(p.books.t, agoratest.Direct{}, p.urls[p.rnd.IntN(len(p.urls))], "", nil)
	if err != nil {
		return
	}
	hello := fmt.Sprintf(`{"type":"register","id":%q`, p.id)
	if p.token != "" {
		hello += fmt.Sprintf(`,"resume_token":%q%s`, p.token, p.role.hello())
	}
	if conn.Try(hello+"}") != nil {
		conn.Drop()
		return
	}
	f, ok := conn.Next(await.Long)
	var w heard
	if !ok || json.Unmarshal([]byte(f), &w) != nil || w.Type != "registered" {
		conn.Drop()
		return
	}
	p.conn, p.token = conn, w.Token
	p.cut = time.Now().Add(50*time.Millisecond + p.about(2*time.Second))
	if !w.Resumed {
		p.sessions++
	}
	p.role.bound(w, !w.Resumed)
}

func (p *party) hear(f agoratest.Frame) {
	var h heard
	if err := json.Unmarshal([]byte(f), &h); err != nil {
		p.books.fault("%s got %s: %v", p.id, f, err)
		return
	}
	p.role.hear(h)
}

// tell sends a frame. A connection that is gone shows by itself.
func (p *party) tell(format string, args ...any) { _ = p.conn.Try(fmt.Sprintf(format, args...)) }
