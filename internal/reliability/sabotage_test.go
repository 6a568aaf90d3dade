package reliability

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

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

// Failed tells whether anything was wrong.
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

// need is a protection and the cell that goes wrong without it.
type need struct{ off, cell string }

// needs begins with what is seen quickly. Nudges and audits stand in for each other: what either
// would have told is told by the other soon after, so nothing goes wrong until both are left out.
var needs = []need{
	{"msgid", "the log's answers are lost"},
	{"fence", "a dead edge's last words arrive late"},
	{"epoch", "a frozen edge's last words arrive late"},
	{"nudge,audit", "the log's answers are lost"},
}

// TestEachProtectionIsNeeded leaves out one protection at a time: a cell that holds with
// it must go wrong, or it would prove nothing.
func TestEachProtectionIsNeeded(t *testing.T) {
	few := needs
	switch {
	case testing.Short():
		few = needs[:1]
	case !chaos:
		few = needs[:2]
	}
	binary := agoratest.BuildAgora(t, "sabotage")
	c := agoratest.StartProcesses(t, agoratest.ProcessOptions{Lease: lease, Binary: binary})
	for k, n := range few {
		t.Run(n.off+"/"+n.cell, func(t *testing.T) {
			for _, e := range c.Edges {
				e.Kill()
				e.Become(binary, "AGORA_SABOTAGE="+n.off)
			}
			goesWrong(t, c, find(t, n.cell), k)
		})
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

// goesWrong plays a cell until something is wrong, a few times at most.
func goesWrong(t *testing.T, c *agoratest.Processes, x cell, k int) {
	t.Helper()
	for try := range 3 {
		said := watch(t, func(t testing.TB) { x.run(t, c, 10*k+try, "") })
		if len(said) > 0 {
			t.Logf("%s: %.300s", x.name, said[0])
			return
		}
	}
	t.Errorf("%s: nothing went wrong without the protection", x.name)
}
