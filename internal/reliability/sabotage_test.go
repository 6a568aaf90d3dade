//go:build chaos

package reliability

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// witness is a test whose failing is what is wanted: it keeps what would have failed it.
type witness struct {
	testing.TB

	mu   sync.Mutex // guards the fields below
	said []string
}

func (w *witness) keep(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// Failed reports whether anything was wrong.
func (w *witness) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.said) > 0
}

func (w *witness) Error(args ...any)                 { w.keep(fmt.Sprint(args...)) }
func (w *witness) Errorf(format string, args ...any) { w.keep(fmt.Sprintf(format, args...)) }
func (w *witness) Fatal(args ...any)                 { w.Error(args...); runtime.Goexit() }
func (w *witness) Fatalf(format string, args ...any) { w.Errorf(format, args...); runtime.Goexit() }

// watch runs what may fail, and returns what was wrong with it.
func watch(t *testing.T, what func(testing.TB)) []string {
	w := &witness{TB: t}
	var done sync.WaitGroup
	done.Go(func() { what(w) })
	done.Wait()
	return w.said
}

// need is a cell, the protections that it goes wrong without, and how.
type need struct {
	cell, off string
	wrong     string // what is said then, as a regular expression
}

// sooner has cells that come back to normal without what protects them too, but later: a cell is not normal then
// when it takes longer than this. With it, that one takes 3.6 to 4.0 s, and without, 9 to 11 s.
var sooner = map[string]time.Duration{"all of NATS is down for 10 s": 7 * time.Second}

// needs has every cell of the matrix, in its order. Where two protections stand in for each other, both are left out.
var needs = []need{
	{"an edge is killed", "gone", `want at most`},
	{"an edge is frozen past its lease, and thawed", "lease,settle", `through a socket that it had left`},
	{"an edge is drained", "drain", `no agent saw "agent.reconnect"`},
	{"a dead edge's last words arrive late", "fence", `came to .* after`},
	{"a frozen edge's last words arrive late", "epoch", `came to .* after`},
	{"sockets are cut", "cursor", `never came|not normal`},
	{"an agent reads nothing, past its time", "cursor", `never came|not normal`},
	{"an agent's network goes, and it comes back by another", "settle", `through a socket that it had left`},
	{"agents reconnect in a loop", "number", `again, after`},
	{"the leaders of all streams step down", "retry", `not normal`},
	{"a NATS node is killed", "retry", `not normal`},
	{"a NATS node comes back", "retry", `not normal`},
	{"a NATS node is cut off from the others", "nudge,audit", `not all there`},
	{"the log's answers are lost", "msgid", `again, after`},
	{"the log's answers are lost", "nudge,audit", `not all there`},
	{"all of NATS is down for 10 s", "retry", `not normal`},
	{"Redis is down for 10 s", "order", `number it anew|never came`},
	{"Redis is down past the leases, and comes back empty", "assert", `AGENT_NOT_FOUND`},
	{"Redis is restarted, empty", "whole", `NOT_FOUND|lost its session`},
	{"an edge is cut off from NATS", "gap", `never came|not normal`},
	{"an edge is cut off from NATS while the last is said", "audit", `not all there`},
	{"an edge's lines to NATS go silent", "msgid", `again, after`},
	{"an edge is cut off from Redis", "order", `number it anew|never came`},
	{"an edge's line to Redis goes silent", "settle", `through a socket that it had left`},
	{"the clock of an edge is off by 1h", "clock", `left of 5m|the deadline has passed`},
	{"the clock of an edge is off by -1h", "clock", `left of 5m|no progress`},
}

// TestEachCellNeedsItsProtection leaves out what protects each cell: a cell that holds with
// it must go wrong, or it would prove nothing.
func TestEachCellNeedsItsProtection(t *testing.T) {
	for _, x := range cells() {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.cell == x.name }) {
			t.Errorf("nothing is known that %q would go wrong without", x.name)
		}
	}
	binary := agoratest.BuildAgora(t, "sabotage")
	c := start(t, agoratest.ProcessOptions{Lease: lease, Binary: binary})
	for k, n := range needs {
		t.Run(n.off+"/"+n.cell, func(t *testing.T) { n.plays(t, c, find(t, n.cell), binary, k) })
		c.Under(t)
	}
}

// iatNeeds has the cells of IAT, but for those in which somebody is gone: what they want is told, and they wait in vain
// where nothing is.
var iatNeeds = []need{
	{"the edge of callers and listeners is killed", "once", `the witness was asked 15 times, want 10`},
	{"the edge of callers and listeners is killed", "cursor", `notification \d+ (never )?came to`},
	{"the edge of who answers is killed", "cursor", `in vain: the witness is asked 10 times`},
	{"the edge of who answers is killed, with a chunk that it does not know to be stored", "name", `the chunks are "01233"`},
	{"both are killed", "once", `the witness was asked 15 times, want 10`},
	{"Redis is restarted, empty", "assert", `refused with AGENT_NOT_FOUND`},
}

// TestEachCellOfIATNeedsItsProtection is the same for the cells of IAT.
func TestEachCellOfIATNeedsItsProtection(t *testing.T) {
	for _, x := range iatCells {
		if !x.gone && !slices.ContainsFunc(iatNeeds, func(n need) bool { return n.cell == x.name }) {
			t.Errorf("nothing is known that %q would go wrong without", x.name)
		}
	}
	binary := agoratest.BuildAgora(t, "sabotage")
	c := start(t, agoratest.ProcessOptions{Lease: lease, Binary: binary})
	for k, n := range iatNeeds {
		at := slices.IndexFunc(iatCells, func(x iatCell) bool { return x.name == n.cell })
		if at < 0 {
			t.Errorf("no cell is called %q", n.cell)
			continue
		}
		t.Run(n.off+"/"+n.cell, func(t *testing.T) { n.goesWrong(t, c, binary, k, iatCells[at].run) })
		c.Under(t)
	}
}

// find returns a cell by its name.
func find(t *testing.T, name string) cell {
	t.Helper()
	for _, x := range cells() {
		if x.name == name {
			return x
		}
	}
	t.Fatalf("no cell is called %q", name)
	return cell{}
}

// plays plays a cell of the matrix without its protections.
func (n need) plays(t *testing.T, c *agoratest.Processes, x cell, binary string, k int) {
	t.Helper()
	x.normal = cmp.Or(sooner[x.name], x.normal, 15*time.Second)
	n.goesWrong(t, c, binary, k, func(t testing.TB, c *agoratest.Processes, try int) { x.run(t, c, try, binary, n.off) })
}

// goesWrong plays a cell without its protections until that shows, a few times at most, from a presence that is empty:
// what went wrong before leaves no trace there. Each try has a number of its own.
func (n need) goesWrong(t *testing.T, c *agoratest.Processes, binary string, k int, play func(testing.TB, *agoratest.Processes, int)) {
	t.Helper()
	var all []string
	tries := 10 // some show only where the fault comes between a record and its answer
	if c.Sentinel != nil {
		tries = 1 // the master is dead then
	}
	for try := range tries {
		for _, e := range c.Edges {
			e.Kill()
			e.Become(binary, "AGORA_SABOTAGE="+n.off)
		}
		if c.Redis != nil {
			c.Redis.Stop()
		}
		said := watch(t, func(t testing.TB) { play(t, c, 20*k+try) })
		for _, s := range said {
			t.Logf("%s without %s: %.300s", n.cell, n.off, s)
		}
		all = append(all, said...)
		if slices.ContainsFunc(said, regexp.MustCompile(n.wrong).MatchString) {
			return
		}
	}
	t.Errorf("%s: what shows that %s is missing did not: want %s, got %q", n.cell, n.off, n.wrong, cmp.Or(strings.Join(all, "\n"), "nothing"))
}
