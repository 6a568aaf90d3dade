package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler))
	flag.Parse()
	if err := setPlays(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	var left error
	// A presence client that was cut off looks for its end once a second.
	if code == 0 && !await.Within(await.Long, func() bool { left = goleak.Find(); return left == nil }) {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// plays is how many histories each test runs.
var plays = histories

// setPlays takes their number from the command line, where that says it. rapid, whose number is the same for tests that run side
// by side, checks one at a time.
func setPlays() (err error) {
	f, one := flag.Lookup("rapid.checks"), "1"
	if testing.Short() {
		plays, one = 1, "5" // of which rapid takes a fifth then
	}
	if f.Value.String() != f.DefValue {
		if plays, err = strconv.Atoi(f.Value.String()); err != nil {
			return err
		}
	}
	return flag.Set(f.Name, one)
}

// TestEveryHistoryIsWhatItsAgentsWereTold runs agents of all kinds through random faults. Each message that was
// receipted stands in its log once and in order, streams have no hole and one end, each receiver gets its log once or is
// told what it lacks, sessions of an agent never deliver at once, and rosters are told once.
func TestEveryHistoryIsWhatItsAgentsWereTold(t *testing.T) {
	t.Parallel()
	s := start(t, 1, 4096)
	s.histories(false)
}

// TestHistoriesInWhichPresenceLosesData: what stands in the log holds all the same. Streams end, unless presence falls back to an older copy.
func TestHistoriesInWhichPresenceLosesData(t *testing.T) {
	t.Parallel()
	s := start(t, 1, 4096)
	s.histories(true)
}

// TestHistoriesOfOverflowingMailboxes: the same where mailboxes hold five records, so that retention passes whoever does
// not read at once.
func TestHistoriesOfOverflowingMailboxes(t *testing.T) {
	t.Parallel()
	s := start(t, 1, 5)
	s.histories(false)
}

// few is how many histories may all show nothing by chance: one of thirty has no receipt, or nothing that arrived, and far
// more where the machine is full.
const few = 10

// histories runs them, more where those showed nothing, and says how much was seen.
func (s *servers) histories(losses bool) {
	shown := func() bool { return s.seen.receipted > 0 && s.seen.arrived > 0 }
	for n := 0; n < plays || !shown() && 0 < s.seen.histories && s.seen.histories < few; n++ {
		rapid.Check(s.t, func(rt *rapid.T) { s.history(rt, losses) })
	}
	s.t.Logf("%+v", s.seen)
	if s.seen.histories > 0 && !shown() {
		s.t.Errorf("%+v: the test tests nothing", s.seen)
	}
}

// history is one run: what agents do and what happens to them, until all is quiet; then it is judged.
func (s *servers) history(rt *rapid.T, losses bool) {
	w := s.newWorld(rapid.IntRange(2, 3).Draw(rt, "edges"), rapid.IntRange(3, 5).Draw(rt, "agents"))
	defer w.end()
	for k, a := range w.agents {
		a.connect(w.living()[k%2], false, 0)
	}
	do := w.doings()
	maps.Copy(do, w.faults())
	if losses {
		maps.Copy(do, w.losses())
	}
	names := slices.Sorted(maps.Keys(do))
	for range rapid.IntRange(25, 90).Draw(rt, "steps") {
		name := rapid.SampledFrom(names).Draw(rt, "does")
		if rapid.IntRange(0, 2).Draw(rt, "or speaks") > 0 {
			name = "speaks"
		}
		do[name](rt)
		<-time.After(millis(rt, 0, 30, "then waits"))
		if w.failed() != "" {
			break
		}
	}
	if w.failed() == "" {
		w.settle()
	}
	if w.failed() != "" {
		w.showAll()
	}
	w.tally()
	if bad := w.failed(); bad != "" {
		rt.Fatalf("%s\n%s", bad, w.story())
	}
}

// doings are what agents do.
func (w *world) doings() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"speaks":      w.speak,
		"comes back":  w.comeBack,
		"is cut off":  w.cutOff,
		"says bye":    func(rt *rapid.T) { w.anAgent(rt).tell(upward{verb: goodbye}) },
		"joins":       func(rt *rapid.T) { w.anAgent(rt).tell(upward{verb: join, space: w.space.Space}) },
		"leaves":      func(rt *rapid.T) { w.anAgent(rt).leave() },
		"gives up":    w.giveUp,
		"stops":       func(rt *rapid.T) { w.anAgent(rt).pause(true) },
		"reads on":    func(rt *rapid.T) { w.anAgent(rt).pause(false) },
		"turns deaf":  func(rt *rapid.T) { w.anAgent(rt).turn(true) },
		"hears again": func(rt *rapid.T) { w.anAgent(rt).turn(false) },
	}
}

func (w *world) speak(rt *rapid.T) {
	a, b := w.anAgent(rt), w.anAgent(rt)
	n := rapid.IntRange(1, 8).Draw(rt, "frames")
	what := rapid.SliceOfN(rapid.IntRange(0, 1<<10), n, n).Draw(rt, "what")
	publishes := rapid.IntRange(0, 4).Draw(rt, "publishes") == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	to := b.to()
	if publishes {
		to = w.space
		if a.boxes[to.Space] == nil {
			return
		}
	}
	if a == b || !a.began {
		return
	}
	for _, k := range what {
		a.make(to, k)
	}
}

// chatter has every agent of an edge say something to everybody else.
func (w *world) chatter(rt *rapid.T, e *node) {
	what := rapid.SliceOfN(rapid.IntRange(0, 1<<10), 3, 3).Draw(rt, "what")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		if a.d == nil || a.d.e != e || !a.ready {
			continue
		}
		for _, b := range w.agents {
			for _, k := range what {
				if a != b {
					a.make(b.to(), k)
				}
			}
		}
	}
}

func (a *agent) to() agora.Address { return agora.ToAgent(agora.DefaultTenant, a.id) }

func (w *world) comeBack(rt *rapid.T) {
	a, e := w.anAgent(rt), w.anEdge(rt)
	token, noticed := rapid.Bool().Draw(rt, "with token"), millis(rt, 0, 400, "its old connection is noticed after")
	w.say("%s connects to %s, with token: %v", a.id, e.id, token)
	a.connect(e, token, noticed)
}

func (w *world) cutOff(rt *rapid.T) {
	a, noticed := w.anAgent(rt), millis(rt, 0, 400, "noticed after")
	w.mu.Lock()
	d := a.d
	w.note("%s is cut off", a.id)
	w.mu.Unlock()
	if d != nil {
		d.drop(noticed)
	}
}

// giveUp has an agent cancel the youngest stream to it.
func (w *world) giveUp(rt *rapid.T) {
	a := w.anAgent(rt)
	w.mu.Lock()
	var p *part
	for uid := range w.arrived {
		q := w.parts[uid]
		if q.lane.to.Agent == a.id && q.stream != "" && (p == nil || q.uid > p.uid) {
			p = q
		}
	}
	w.mu.Unlock()
	if p != nil {
		a.tell(upward{verb: cancel, part: p})
	}
}

func (a *agent) tell(f upward) {
	a.w.mu.Lock()
	d, ready := a.d, a.ready
	a.w.mu.Unlock()
	if ready && d != nil {
		d.tell(f)
	}
}

// leave has the agent leave the space.
func (a *agent) leave() {
	a.w.mu.Lock()
	b := a.boxes[a.w.space.Space]
	if b != nil && a.ready {
		b.doubt = true
	}
	a.w.mu.Unlock()
	a.tell(upward{verb: leave, space: a.w.space.Space})
}

func (a *agent) pause(paused bool) {
	a.w.mu.Lock()
	d := a.d
	a.w.mu.Unlock()
	if d != nil {
		d.pause(paused)
	}
}

func (a *agent) turn(deaf bool) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.deaf = deaf
}

// settle ends every fault, has everybody come back and say what is left, and waits until all has come; then
// everybody leaves, and the logs are judged.
func (w *world) settle() {
	w.say("all faults end")
	w.mend()
	w.await("everybody is back and has everything", func() string {
		for _, a := range w.agents {
			if miss := w.wanting(a); miss != "" {
				return miss
			}
		}
		return w.unwatched()
	})
	if w.failed() != "" {
		return
	}
	w.checkMembers()
	w.say("everybody leaves")
	for _, a := range w.agents {
		a.tell(upward{verb: goodbye})
	}
	w.await("every session is over", func() string {
		left, err := w.living()[0].actor.Directory().All(context.Background())
		if err != nil {
			return err.Error()
		}
		for _, x := range left {
			if slices.ContainsFunc(w.agents, func(a *agent) bool { return a.id == x.ID }) {
				return fmt.Sprintf("%s is still there", x.ID)
			}
		}
		for _, e := range w.all() {
			if e.dead.Load() && !e.gone.Load() {
				return fmt.Sprintf("something of %s may still arrive", e.id)
			}
		}
		if in := w.stillIn(); in != "" {
			return in
		}
		if open := w.unended(); open != "" {
			return open
		}
		return w.unwatched()
	})
	w.collect()
	w.judge()
}

// mend ends every fault and lets what is late arrive.
func (w *world) mend() {
	for _, e := range w.living() {
		e.freeze(false)
		e.log.Refuse(false)
		e.pres.Refuse(false)
	}
	for _, a := range w.agents {
		a.pause(false)
		a.turn(false)
	}
}

// wanting says what an agent waits for; empty when it has all and has said all.
func (w *world) wanting(a *agent) string {
	w.mu.Lock()
	away := a.d == nil
	w.mu.Unlock()
	if away {
		a.connect(w.living()[len(w.notes)%len(w.living())], true, 0)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !a.ready {
		return fmt.Sprintf("%s is not welcome", a.id)
	}
	for _, l := range a.lanes {
		if l.to.IsSpace() && a.boxes[l.to.Space] == nil {
			continue
		}
		if a.names == plainly && l.next < len(l.made) || a.names != plainly && l.stored < len(l.made) {
			return fmt.Sprintf("%s has %d of %d stored for %s, %d sent", a.id, l.stored, len(l.made), l.to.Name(), l.next)
		}
	}
	for _, b := range a.boxes {
		if b.doubt {
			continue
		}
		if miss := w.missing(a, b); miss != "" {
			return miss
		}
	}
	return ""
}

// unwatched says which log the watcher has not seen to its end.
func (w *world) unwatched() string {
	for to, in := range w.tails {
		last, err := w.watcher.Last(context.Background(), to)
		if err != nil {
			return err.Error()
		}
		w.mu.Lock()
		log := w.logs[to]
		w.mu.Unlock()
		if seen, _ := in.Tail(); last > seen && (len(log) == 0 || log[len(log)-1].Seq < last) {
			return fmt.Sprintf("the watcher is behind at %s", to.Name())
		}
	}
	return ""
}

// collect gives agents that have left nothing more: what came behind their goodbye is not theirs to have.
func (w *world) collect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, log := range w.logs {
		for _, a := range w.agents {
			if b := a.boxes[""]; b.to == to {
				for i := range log {
					if m := &log[i]; m.Seq > b.last {
						b.seen[m.Seq] = true
					}
				}
			}
		}
	}
}

// tally counts what the history saw.
func (w *world) tally() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.histories++
	w.seen.said += len(w.parts) - 1
	w.seen.arrived += len(w.arrived)
	for _, p := range w.parts[1:] {
		if p.receipt {
			w.seen.receipted++
		}
	}
	for _, log := range w.logs {
		for i := range log {
			if log[i].Part == agora.Abort {
				w.seen.aborts++
			}
		}
	}
	for _, a := range w.agents {
		w.seen.sessions += a.opens
		w.seen.gaps += len(a.boxes[""].gaps)
	}
}

// checkMembers compares the members of the space with what its agents know.
func (w *world) checkMembers() {
	w.mu.Lock()
	lax := w.lax
	w.mu.Unlock()
	if lax {
		return
	}
	told := time.Time{}
	w.await("the space has its members", func() string {
		if now := time.Now(); now.Sub(told) > lease { // an answer may have been lost, or an edge have refused: it is asked for again
			told = now
			w.repeatMemberships()
		}
		got, err := w.living()[0].store.Spaces.Members(context.Background(), agora.DefaultTenant, w.space.Space)
		if err != nil && !errors.Is(err, presence.ErrNoSpace) {
			return err.Error()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, a := range w.agents {
			if in, is := slices.Contains(got, a.id), a.boxes[w.space.Space] != nil; in != is {
				return fmt.Sprintf("%s is a member: %v, by its own word: %v", a.id, in, is)
			}
		}
		return ""
	})
}

// repeatMemberships has every agent say whether it is in the space, as it takes it.
func (w *world) repeatMemberships() {
	for _, a := range w.agents {
		w.mu.Lock()
		b, away := a.boxes[w.space.Space], a.d == nil
		in := b != nil && !b.doubt
		w.mu.Unlock()
		switch {
		case away:
			a.connect(w.living()[0], true, 0)
		case in:
			a.tell(upward{verb: join, space: w.space.Space})
		default:
			a.leave()
		}
	}
}

// await polls until nothing is missing.
func (w *world) await(what string, missing func() string) {
	var miss string
	if !await.Within(await.Long, func() bool { miss = missing(); return miss == "" || w.failed() != "" }) {
		w.fail("waited in vain until %s: %s", what, miss)
	}
}
