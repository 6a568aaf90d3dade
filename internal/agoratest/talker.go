package agoratest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// talker is an agent that keeps sending numbered frames to others, and
// accounts for every one that it gets. It comes back whenever its connection goes.
type talker struct {
	talk *Talk
	id   string
	kick atomic.Bool // its socket is to be cut

	mu     sync.Mutex // guards the fields below
	conn   *Client    // nil while it is away
	token  string
	last   uint64 // position in its mailbox
	space  uint64 // position in the space, once it is in
	out    []*outgoing
	in     map[string]uint64   // last number, by sender and where it was sent
	holes  map[string][]uint64 // numbers that were passed over, by the same
	texts  map[string]int      // bytes of events that come in deltas
	faults []string
}

// outgoing is what a talker sends to one addressee.
type outgoing struct {
	to      string // an agent; empty for the space
	made    uint64 // numbers handed out so far
	stored  uint64 // numbers known to be stored
	next    uint64 // number to send next
	pause   time.Time
	created time.Time       // when the last number was handed out
	refusal Frame           // the last error about it
	failed  map[uint64]bool // numbers that were refused for good
}

// Between two frames of one sender to one receiver, and how many may be unreceipted.
const (
	beat   = 15 * time.Millisecond
	window = 32
)

// streak is how many frames make one round: a one-shot, a stream of five parts, a reply.
const streak = 7

// large is the text of an event that goes out in deltas.
const large = 3000

// frame returns the frame of a number; sent again it is the same.
func (o *outgoing) frame(n uint64) string {
	if o.to == "" {
		text := strconv.FormatUint(n, 10)
		if n%5 == 0 {
			text = strings.Repeat("x", large)
		}
		return fmt.Sprintf(`{"type":"space.publish","space":"general","n":%d,"data":{"text":"%s","timestamp":%d}}`, n, text, n)
	}
	head := fmt.Sprintf(`"to":%s,"n":%d`, Quote(o.to), n)
	stream := n - (n-1)%streak
	switch (n - 1) % streak {
	case 0:
		return fmt.Sprintf(`{"type":"send",%s,"payload":%d}`, head, n)
	case 1:
		return fmt.Sprintf(`{"type":"send",%s,"stream_id":"s-%d","stream":true,"payload":%d}`, head, stream, n)
	case 2, 3, 4:
		return fmt.Sprintf(`{"type":"send_chunk",%s,"stream_id":"s-%d","chunk":"%d"}`, head, stream, n)
	case 5:
		return fmt.Sprintf(`{"type":"send_end",%s,"stream_id":"s-%d"}`, head, stream)
	}
	return fmt.Sprintf(`{"type":"reply",%s,"payload":%d}`, head, n)
}

// kinds are the types in which frames arrive, by their place in a round.
var kinds = [streak]string{"message", "message", "message_chunk", "message_chunk", "message_chunk", "message_end", "reply"}

func (k *talker) joined() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.space != 0
}

// run talks until the talk is over.
func (k *talker) run() {
	for !k.talk.over.Load() {
		k.mu.Lock()
		conn := k.conn
		k.mu.Unlock()
		if conn == nil {
			k.connect()
			continue
		}
		if k.kick.Swap(false) {
			conn.Drop()
		}
		k.push(conn)
		for f, ok := conn.Next(5 * time.Millisecond); ok; f, ok = conn.Next(0) {
			k.handle(f)
		}
		if conn.Gone() != nil {
			conn.Drop()
			k.mu.Lock()
			k.conn = nil
			k.mu.Unlock()
		}
	}
}

// connect comes back to some edge and says where it stands.
func (k *talker) connect() {
	edges := k.talk.cluster.Edges()
	conn, _, err := TryConnect(k.talk.cluster.t, Direct{}, k.talk.cluster.URL(edges[rand.IntN(len(edges))]), "", nil)
	if err != nil {
		<-time.After(20 * time.Millisecond) // the edge may just have gone
		return
	}
	k.mu.Lock()
	first := k.token == ""
	hello := fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s}}`, Quote(k.id))
	if !first {
		hello = fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s},"resume_token":%s,"last_seq":%d,"spaces":{"general":%d}}`,
			Quote(k.id), Quote(k.token), k.last, k.space)
	}
	k.mu.Unlock()
	if conn.Try(hello) != nil {
		conn.Drop()
		return
	}
	w, ok := conn.Next(patience)
	if !ok || w.Type() != "agent.registered" {
		conn.Drop()
		<-time.After(50 * time.Millisecond)
		return
	}
	k.welcome(conn, w, first)
}

func (k *talker) welcome(conn *Client, w Frame, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conn, k.token = conn, w.Text("resume_token")
	if first {
		k.last = w.Uint("last_seq")
		_ = conn.Try(`{"type":"space.join","id":"join","space":"general"}`) // a connection that is gone shows soon
	} else if w.Raw("resumed") != "true" {
		k.fault("lost its session: %s", w)
	}
	for _, o := range k.out {
		o.next = o.stored + 1
	}
}

// push sends what is new, and again what is not known to be stored after a loss.
func (k *talker) push(conn *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, o := range k.out {
		if !k.talk.stopped.Load() && now.Sub(o.created) >= beat && o.made < o.stored+window {
			o.made++
			o.created = now
		}
		for now.After(o.pause) && o.next <= o.made {
			if o.failed[o.next] {
				o.next++
				continue
			}
			if conn.Try(o.frame(o.next)) != nil {
				return
			}
			o.next++
		}
	}
}

// handle takes a frame.
func (k *talker) handle(f Frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch f.Type() {
	case "space.joined":
		k.space = max(k.space, f.Seq())
	case "receipt":
		o := k.lane(f.Text("to"))
		o.stored = max(o.stored, f.Uint("n"))
		o.skip()
		return
	case "error":
		k.refused(f)
	case "gap":
		k.fault("was told of a gap: %s", f)
	case "message", "message_chunk", "message_end", "reply":
		k.got(f, f.Text("from"))
	case "space.event", "space.event.delta", "space.event.done":
		k.event(f)
	}
	if strings.HasPrefix(f.Type(), "space.") {
		k.space = max(k.space, f.Seq())
	} else {
		k.last = max(k.last, f.Seq())
	}
}

func (k *talker) lane(to string) *outgoing {
	for _, o := range k.out {
		if o.to == to {
			return o
		}
	}
	k.fault("has no lane to %q", to)
	return &outgoing{}
}

// refused goes back to the first frame that is not stored, a little later. What
// was refused for good is not sent again, nor the rest of its stream.
func (k *talker) refused(f Frame) {
	o := k.lane(f.Text("to"))
	o.refusal = f
	switch n := f.Uint("n"); f.Text("code") {
	case "UNAVAILABLE":
		o.next, o.pause = o.stored+1, time.Now().Add(50*time.Millisecond)
	case "AGENT_NOT_FOUND": // presence may have forgotten everybody
		o.failed[n] = true
		for ; (n-1)%streak > 0 && (n-1)%streak < streak-2; n++ {
			o.failed[n+1] = true
		}
		o.skip()
	default:
		k.fault("got %s", f)
	}
}

// skip passes over what will never be stored.
func (o *outgoing) skip() {
	for o.failed[o.stored+1] && o.stored < o.made {
		o.stored++
	}
}

// got accounts for a numbered frame.
func (k *talker) got(f Frame, from string) {
	n, last := f.Uint("n"), k.in[from]
	switch {
	case n <= last && f.Raw("redelivered") == "true":
		return
	case n <= last:
		k.fault("got number %d of %s again, after %d: %.300s", n, from, last, f)
	}
	for gone := last + 1; gone < n; gone++ {
		k.holes[from] = append(k.holes[from], gone)
	}
	if want := kinds[(n-1)%streak]; !strings.HasPrefix(from, "#") && f.Type() != want {
		k.fault("got number %d of %s as %s, want %s", n, from, f.Type(), want)
	}
	k.in[from] = max(n, last)
}

// event accounts for an event, or a part of one: its last part has the number.
func (k *talker) event(f Frame) {
	event, data := f.Text("event_id"), Frame(f.Raw("data"))
	switch f.Type() {
	case "space.event":
		k.got(f, "#"+data.Text("from"))
	case "space.event.delta":
		if from := data.Text("from"); from != "" {
			k.texts[event] = 0
			k.texts[event+"/from"] = len(k.talk.ids) // which one is found below
			for i, id := range k.talk.ids {
				if id == from {
					k.texts[event+"/from"] = i
				}
			}
		}
		k.texts[event] += len(data.Text("text"))
	case "space.event.done":
		if k.texts[event] != large {
			k.fault("got %d bytes of event %s, want %d", k.texts[event], event, large)
		}
		k.got(f, "#"+k.talk.ids[k.texts[event+"/from"]])
		delete(k.texts, event)
		delete(k.texts, event+"/from")
	}
}

func (k *talker) fault(format string, args ...any) {
	if len(k.faults) < 5 {
		k.faults = append(k.faults, k.id+" "+fmt.Sprintf(format, args...))
	}
}
