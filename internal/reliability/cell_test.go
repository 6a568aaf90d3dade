package reliability

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// cell is one failure, and what may come of it.
type cell struct {
	name string
	talk agoratest.TalkOptions
	// fault breaks something while agents talk, and mends it where it does not heal by itself.
	fault func(*stage)

	always bool          // played without chaos, too
	iat    bool          // and with IAT agents then
	caught float64       // leases from an agent's first try to connect again until it has all that it missed, which chaos judges; unbounded
	normal time.Duration // until everything that was sent before the fault was over has arrived, and more; as long as tests wait
	told   []string      // codes that agents must have seen
	calm   bool          // nobody is refused anything, as long as the log is back soon: chaos judges it
	aborts bool          // streams may be given up, before the eyes of both ends
}

// stage is a cluster under load, for one cell.
type stage struct {
	*agoratest.Processes
	t         testing.TB
	talk      *agoratest.Talk
	iat       *iatLoad // nil for none
	sabotaged string   // binary that can be made to do wrong
	off       string   // protections that its edges are to do without
	but       []int    // agents that the fault is done to, which don't count among those who notice it
}

// outcome is what came of a cell.
type outcome struct {
	agoratest.Recovery
	name           string
	normal         time.Duration
	total, refused int
	load           soak.Report // of the Go clients that ran beside
}

// run plays a cell on a cluster that is whole, and leaves it so; n tells it from others that were played there. Edges
// that it needs sabotaged become that binary, without the protections named in off.
func (x cell) run(t testing.TB, c *agoratest.Processes, n int, sabotaged, off string) outcome {
	c.Under(t)
	c.Heal()
	x.talk.Name, x.talk.Silence = fmt.Sprintf("cell-%d", n), cmp.Or(x.talk.Silence, silence)
	load := startLoad(t, c.URLs())
	var iat *iatLoad
	if chaos || x.iat {
		iat = startIATLoad(t, c, fmt.Sprint("iat-", n))
	}
	s := &stage{Processes: c, t: t, sabotaged: sabotaged, off: off, iat: iat, talk: agoratest.StartTalk(t, c.URLs, x.talk)}
	defer load.run.Close()
	defer iat.end()
	defer s.talk.End()
	s.talk.Progress(5)
	s.iat.progress(2)
	s.talk.Mark()
	x.fault(s)
	o := outcome{name: x.name, normal: s.talk.Normal(cmp.Or(x.normal, await.Long))}
	o.Recovery = s.talk.Recovery(s.but...)
	c.Heal()
	o.total, o.refused = s.talk.Settle()
	s.talk.End()
	o.load = load.finish(t)
	iat.progress(1)
	iat.finish(x.aborts)
	x.judge(t, o)
	return o
}

// judge holds an outcome to what the cell allows.
func (x cell) judge(t testing.TB, o outcome) {
	t.Logf("%d frames, of which %d came once and in order and the senders of the rest know it; normal after %v, back after %v, caught up after %v, longest pause %v; %s",
		o.total, o.total-o.refused, o.normal, o.Back, o.CaughtUp, o.Pause, codes(o))
	if took := o.CaughtUp.Seconds() / lease.Seconds(); chaos && x.caught > 0 && took > x.caught {
		t.Errorf("an agent took %.2f leases from its first try to what it had missed, want at most %.2f", took, x.caught)
	}
	for _, code := range x.told {
		if o.Codes[code] == 0 {
			t.Errorf("no agent saw %q", code)
		}
	}
	judgeLoad(t, o.load)
	if why := x.untoward(o); len(why) > 0 {
		t.Error(strings.Join(why, "; "))
	}
}

// untoward says what was refused, in the eyes of its senders, and should not have been.
func (x cell) untoward(o outcome) (why []string) {
	if n := o.Codes["UNAVAILABLE"]; chaos && x.calm && n > 0 {
		why = append(why, fmt.Sprintf("%d frames were refused with UNAVAILABLE, want none", n))
	}
	if x.aborts {
		return why
	}
	if n := o.load.Total; n.Refused > 0 || n.Aborted > 0 {
		why = append(why, fmt.Sprintf("Go clients: %d refused and %d streams aborted, want none", n.Refused, n.Aborted))
	}
	if o.refused > 0 {
		why = append(why, fmt.Sprintf("%d frames did not arrive and their senders know it, want none", o.refused))
	}
	return why
}

// row is the outcome as a row of the table in docs/reliability.md.
func (o outcome) row() string {
	back := "–"
	if o.CaughtUp > 0 {
		back = seconds(o.Back) + " / " + seconds(o.CaughtUp)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", o.name, codes(o), back, seconds(o.Pause), seconds(o.normal))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// codes returns what agents saw, in words.
func codes(o outcome) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(o.Codes)) {
		all = append(all, fmt.Sprintf("%s %d×", code, o.Codes[code]))
	}
	return strings.Join(all, ", ")
}

// lasts lets an outage last, unless something goes wrong before.
func (s *stage) lasts(d time.Duration) {
	s.t.Helper()
	s.talk.Watch(d)
}
