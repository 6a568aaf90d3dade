package reliability

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// callCell is one failure while calls are under way. Edge 0 is that of callers, edge 1 that of who is asked, and edge 2
// stays.
type callCell struct {
	name   string
	fault  func(*agoratest.Processes)
	gone   bool // the edge of callers is, with what they had asked
	always bool // played without chaos, too
}

var callCells = []callCell{
	{name: "the caller's edge is killed", fault: func(c *agoratest.Processes) { c.Edges[0].Kill() }, gone: true, always: true},
	{name: "the edge of who is asked is killed", fault: func(c *agoratest.Processes) { c.Edges[1].Kill() }},
	{name: "both are killed", fault: func(c *agoratest.Processes) {
		c.Edges[0].Kill()
		c.Edges[1].Kill()
	}, gone: true, always: true},
	{name: "Redis is restarted, empty", fault: func(c *agoratest.Processes) {
		c.Redis.Stop()
		c.Redis.Start()
	}},
}

// doomed is the lease of the edges that die: what is left of them waits for it.
const doomed = 4 * time.Second

// TestCallsAreDoneOnceAndAnsweredOrEndWhateverDies has a call be done once at most, its answer be whole, in order and
// once or end in an error, what callers of a dead edge had asked be given up once, and an answer that nobody waits for
// be mail.
func TestCallsAreDoneOnceAndAnsweredOrEndWhateverDies(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.ProcessOptions{Lease: lease, Leases: []time.Duration{min(lease, doomed), min(lease, doomed)}})
	cells := slices.DeleteFunc(slices.Clone(callCells), func(x callCell) bool { return !chaos && !x.always })
	for n, x := range slices.Repeat(cells, rounds) {
		t.Run(x.name, func(t *testing.T) { x.run(t, c, n) })
		c.Under(t)
	}
}

const opened = 5 // calls of the witness of each kind

// run plays a cell.
func (x callCell) run(t testing.TB, c *agoratest.Processes, n int) {
	c.Under(t)
	c.Heal()
	urls := c.URLs()
	caller, callee := fmt.Sprint("anna-", n), fmt.Sprint("witness-", n) // of this cell alone, as their numbers are
	anna := startListener(t, caller, urls[2])
	w := startListener(t, callee, urls[1], urls[2])
	a := startAsking(t, c, 1, n<<20)
	var plain, named []<-chan string
	for k := range opened {
		plain = append(plain, a.open(0, caller, callee, fmt.Sprintf("plain-%d-%d", n, k), ""))
		named = append(named, a.open(0, caller, callee, fmt.Sprintf("named-%d-%d", n, k), fmt.Sprintf("named-%d-%d", n, k)))
	}
	await.True(t, "all is asked", func() bool { return w.count(`{"type":"message"}`) == 2*opened })
	defer func() {
		if t.Failed() {
			t.Logf("the witness heard %q", w.all())
		}
	}()
	a.progress(50)
	a.moved.Store(true)
	x.fault(c)
	a.progress(50)
	told := `{"type":"error","code":"STREAM_ABORTED","from":` + agoratest.Quote(caller) + `,"request_id":"plain-%d-%d"}`
	for k := range opened {
		if x.gone {
			await.True(t, "what a dead edge's callers had asked is given up", func() bool { return w.count(fmt.Sprintf(told, n, k)) > 0 })
		}
		w.says(caller, fmt.Sprintf(`"type":"reply","payload":{"request_id":"plain-%d-%d","text":"plain"}`, n, k),
			fmt.Sprintf(`"type":"reply","payload":{"request_id":"named-%d-%d","text":"named"}`, n, k))
	}
	mail := `{"type":"reply","from":` + agoratest.Quote(callee) + `,"payload":{"request_id":"plain-%d-%d","text":"plain"}}`
	for k := range opened {
		want := fmt.Sprintf(`{"request_id":"plain-%d-%d","text":"plain"}`, n, k)
		if x.gone {
			want = ""
			await.True(t, "an answer that nobody waits for is in the mailbox", func() bool { return anna.count(fmt.Sprintf(mail, n, k)) > 0 })
		}
		if got := await.Recv(t, "an answer", plain[k]); got != want {
			t.Errorf("call %d was answered %q, want %q", k, got, want)
		}
		want = fmt.Sprintf(`{"request_id":"named-%d-%d","text":"named"}`, n, k)
		if got := await.Recv(t, "an answer", named[k]); got != want {
			t.Errorf("call %d that has a name was answered %q, want %q", k, got, want)
		}
	}
	a.finish()
	for k := range opened {
		once := 0
		if x.gone {
			once = 1
		}
		if n := w.count(fmt.Sprintf(told, n, k)); n != once {
			t.Errorf("call %d was given up %d times, want %d", k, n, once)
		}
		if n := anna.count(fmt.Sprintf(mail, n, k)); n != once {
			t.Errorf("the answer of call %d was in the mailbox %d times, want %d", k, n, once)
		}
	}
	if n := w.count(`{"type":"error"}`); x.gone && n != opened || !x.gone && n > 0 {
		t.Errorf("the witness was told of %d errors: %q", n, w.all())
	}
	if n := w.count(`{"type":"message"}`); n != 2*opened {
		t.Errorf("the witness was asked %d times, want %d", n, 2*opened)
	}
	w.end()
	anna.end()
	a.end()
}
