package agoratest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// talker is an agent that keeps sending numbered frames to others, and hands
// verify every one that it gets. It comes back whenever its connection goes.
type talker struct {
	talk *Talk
	id   string
	orders
	lines

	// of its own goroutine
	door    int           // where it goes next
	plainly time.Time     // when it sent the last message without a number
	paced   time.Time     // before which it does not try to connect
	blind   bool          // its socket is not read
	silence time.Duration // after which it takes its connection for dead
	upgrade time.Duration // how long it tries to connect at one place

	mu     sync.Mutex // guards the fields below, and what changes of its lines
	pos    position
	left   []*oldSocket      // sockets that it has forgotten
	deltas map[string]*delta // by event
	back   comeback
	faults []string
}

// orders are what the test wants of a talker.
type orders struct {
	kick, abandon atomic.Bool  // its socket is to be cut, or left as it is
	goal          atomic.Int32 // with kick: the edge that it is to come back at; -1 for the same
	spin, stall   atomic.Bool  // its sockets are to be cut again and again; is not to be read
}

// position is where a talker continues from.
type position struct {
	token string // none before it was registered
	last  uint64 // in its mailbox
	space uint64 // in the space, once it is in
}

// delta is an event that comes in deltas.
type delta struct {
	from string
	size int
}

func newTalker(t *Talk, i int) *talker {
	k := &talker{talk: t, id: t.ids[i], lines: newLines(), door: i / 2, deltas: map[string]*delta{}, silence: t.opts.Silence, upgrade: upgradeTime}
	k.back.seen.Codes = map[string]int{}
	k.goal.Store(-1)
	return k
}

func (k *talker) joined() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pos.space != 0
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

// isGone reports whether the agent must connect again, and notes why.
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
	k.back.seen.Lost++
	k.back.seen.Codes[why]++
	return true
}

func (k *talker) fault(format string, args ...any) {
	if len(k.faults) < 5 {
		k.faults = append(k.faults, k.id+" "+fmt.Sprintf(format, args...))
	}
}
