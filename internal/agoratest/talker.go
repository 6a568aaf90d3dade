package agoratest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// talker is an agent that keeps sending numbered frames to others, and hands
// verify every one that it gets. It comes back whenever its connection goes.
type talker struct {
	talk *Talk
	id   string

	kick, abandon atomic.Bool  // its socket is to be cut, or left as it is
	goal          atomic.Int32 // with kick: the edge that it is to come back at; -1 for the same
	spin, stall   atomic.Bool  // its sockets are to be cut again and again; is not to be read

	// of its own goroutine
	door    int           // where it goes next
	plainly time.Time     // when it sent the last message without a number
	paced   time.Time     // before which it does not try to connect
	blind   bool          // its socket is not read
	silence time.Duration // after which it takes its connection for dead
	upgrade time.Duration // how long it tries to connect at one place

	// set before it runs
	out    []*outgoing
	in     map[string]*incoming     // by sender and where it was sent
	plain  *verify.Line             // messages without a number of their own
	plains map[string]*verify.Track // such messages of others, by sender

	mu     sync.Mutex   // guards the fields below, and those that change of out and in
	conn   *Client      // nil while it is away
	left   []*oldSocket // sockets that it has forgotten
	token  string
	last   uint64         // position in its mailbox
	space  uint64         // position in the space, once it is in
	texts  map[string]int // bytes of events that come in deltas
	faults []string
	seen   Recovery
	tried  time.Time         // when it first tried to come back; zero while it is there
	since  time.Time         // when it first tried to come back the last time
	owed   map[string]uint64 // what it has not caught up with since
}

// incoming is what a talker gets from one sender, directly or in the space.
type incoming struct {
	from  int // the sender, among the talk's agents
	track *verify.Track
	at    time.Time     // when the last one came
	pause time.Duration // the longest between two since Mark
}

// upgradeTime is how long an agent first tries to connect at one edge, before it goes to the next.
const upgradeTime = 2 * time.Second

func newTalker(t *Talk, i int) *talker {
	k := &talker{
		talk: t, id: t.ids[i], door: i / 2, in: map[string]*incoming{}, plains: map[string]*verify.Track{},
		texts: map[string]int{}, silence: t.opts.Silence, upgrade: upgradeTime,
	}
	k.seen.Codes = map[string]int{}
	k.goal.Store(-1)
	return k
}

// everybody stands for the space, among those whom an agent sends to.
const everybody = -1

// line makes a line from an agent to another, or to everybody.
func (t *Talk) line(from, to int) {
	k, o := t.talkers[from], &outgoing{talk: t, next: 1}
	key, receivers := k.id, t.talkers
	if to == everybody {
		key = "#" + k.id
	} else {
		o.to, receivers = t.ids[to], t.talkers[to:to+1]
	}
	var tracks []*verify.Track
	for _, r := range receivers {
		in := &incoming{from: from, track: verify.NewTrack(r.id, &verify.Gaps{}), at: time.Now()}
		r.in[key] = in
		tracks = append(tracks, in.track)
	}
	o.line = verify.NewLine(t.tally, fmt.Sprintf("%s to %q", k.id, o.to), remembered, tracks...)
	k.out = append(k.out, o)
}

// plainLine makes a line of messages without numbers of their own.
func (t *Talk) plainLine(from, to int) {
	k, track := t.talkers[from], verify.NewTrack(t.ids[to], &verify.Gaps{})
	k.plain = verify.NewLine(t.tally, k.id+" plainly to "+t.ids[to], remembered, track)
	t.talkers[to].plains[k.id] = track
}

func (k *talker) joined() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.space != 0
}

// impatient reports whether the agent gives up connections that are silent.
func (k *talker) impatient() bool {
	return !k.talk.opts.Patient || k.id != k.talk.ids[1]
}

// run talks until the talk is over.
func (k *talker) run() {
	var conn *Client
	for !k.talk.over.Load() {
		if conn == nil {
			conn = k.connect()
			continue
		}
		k.obey(conn)
		k.push(conn)
		f, ok := conn.Next(5 * time.Millisecond)
		if ok && k.spin.Load() {
			conn.Drop()
		}
		for ; ok; f, ok = conn.Next(0) {
			k.handle(f)
		}
		if k.isGone(conn) {
			for f, ok := conn.Next(0); ok; f, ok = conn.Next(0) { // what came with the end
				k.handle(f)
			}
			conn = nil
		}
	}
	if conn != nil {
		conn.Resume()
		conn.Close(int(websocket.StatusNormalClosure))
	}
}

// obey does to the socket what the test wants done to it.
func (k *talker) obey(conn *Client) {
	if k.kick.Swap(false) {
		if goal := k.goal.Swap(-1); goal >= 0 {
			k.door = int(goal)
		}
		conn.Drop()
	}
	if stall := k.stall.Load(); stall != k.blind {
		k.blind = stall
		conn.line.HoldReads(stall)
	}
}

// isGone reports whether the agent must connect anew, and notes why.
func (k *talker) isGone(conn *Client) bool {
	why := ""
	switch err := conn.Gone(); {
	case err != nil:
		conn.Drop()
		why = "cut"
		if code := websocket.CloseStatus(err); code >= 0 {
			why = fmt.Sprintf("close %d", code)
		}
	case k.abandon.Swap(false):
		k.forget(conn)
		k.door++
		why = "abandoned"
	case !k.blind && k.impatient() && conn.silence() > k.silence:
		k.forget(conn)
		k.silence = min(2*k.silence, patience) // where all is slow nobody is dead
		why = "silence"
	default:
		return false
	}
	k.blind = false
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen.Lost++
	k.seen.Codes[why]++
	return true
}

// connect comes back to some edge and says where it stands; nil when it could not.
func (k *talker) connect() *Client {
	if wait := time.Until(k.paced); wait > 0 {
		<-time.After(min(wait, 20*time.Millisecond)) // the talk may be over
		return nil
	}
	k.mu.Lock()
	if k.tried.IsZero() {
		k.tried = time.Now()
	}
	first, hello := k.token == "", k.hello()
	k.mu.Unlock()
	urls := k.talk.urls()
	conn, why := k.register(urls[k.door%len(urls)], hello, first)
	if conn == nil {
		k.door++ // somewhere else, a little later
		k.paced = time.Now().Add(20 * time.Millisecond)
		k.mu.Lock()
		k.seen.Codes[why]++
		k.mu.Unlock()
	}
	return conn
}

// hello is how it registers. The caller holds mu.
func (k *talker) hello() string {
	if k.token == "" {
		return fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s}}`, Quote(k.id))
	}
	return fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s},"resume_token":%s,"last_seq":%d,"spaces":{%s:%d}}`,
		Quote(k.id), Quote(k.token), k.last, Quote(k.talk.opts.Name), k.space)
}

// register opens a connection and binds it; otherwise it says why not.
func (k *talker) register(url, hello string, first bool) (conn *Client, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), k.upgrade)
	defer cancel()
	conn, _, err := tryConnect(ctx, k.talk.t, Direct{}, url, "", nil)
	if err != nil {
		if ctx.Err() != nil {
			k.upgrade = min(2*k.upgrade, patience) // where all is slow nobody is dead
		}
		return nil, "no connection"
	}
	k.upgrade = upgradeTime
	if conn.Try(hello) != nil {
		conn.Drop()
		return nil, "no connection"
	}
	w, ok := conn.Next(patience)
	if !ok || w.Type() != "agent.registered" {
		conn.Drop()
		if w.Has("code") {
			return nil, "registering: " + w.Text("code")
		}
		return nil, "registering: no answer"
	}
	k.welcome(conn, w, first)
	return conn, ""
}

func (k *talker) welcome(conn *Client, w Frame, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conn, k.token = conn, w.Text("resume_token")
	k.bound()
	if first {
		k.last = w.Uint("last_seq")
		// A connection that is gone shows soon.
		_ = conn.Try(fmt.Sprintf(`{"type":"space.join","id":"join","space":%s}`, Quote(k.talk.opts.Name)))
	} else {
		if w.Raw("resumed") != "true" {
			k.fault("lost its session: %s", w)
		}
		k.seen.Back = max(k.seen.Back, time.Since(k.tried))
		k.owed, k.since = k.stored(), k.tried
		k.caughtUp()
	}
	k.tried = time.Time{}
	for _, o := range k.out {
		o.next = o.line.Settled() + 1
	}
}

func (k *talker) fault(format string, args ...any) {
	if len(k.faults) < 5 {
		k.faults = append(k.faults, k.id+" "+fmt.Sprintf(format, args...))
	}
}
