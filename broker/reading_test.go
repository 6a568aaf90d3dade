package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
)

func TestWhatAnInboxDoesFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from From
		want readState
	}{
		{From{}, readAsksEmpty},
		{From{After: 7}, readAsksFirst},
		{From{Quiet: true, TailAt: time.Now()}, readBegins},
		{From{Time: time.Now()}, readBegins},
		{From{Lost: true}, readTells},
		{From{After: 7, Lost: true}, readTells},
	} {
		if got := c.from.firstRead(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.from, got, c.want)
		}
	}
}

// Every state of a reading meets every event: a gap is told before all else, the leader is asked once for each time that there may be no more, and
// what the listener said of its position counts until something is read.
func TestAReadingAsksOnceAndNeverGoesBackToItsBeginning(t *testing.T) {
	t.Parallel()
	for s := range readStates {
		for e := range readEvents {
			r := inboxReading{state: s}
			r.hears(e)
			next := r.state
			if next >= readStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, s)
			}
			var holds bool
			switch {
			case s == readTells || e == readTold: // nothing else happens before the gap is told, and it is told once
				holds = s != readTells && next == s || s == readTells && (next == readAsksFirst) == (e == readTold)
			case e == readAsked: // the log is read now, from where it is not read yet
				holds = !next.asks() && next != readAsksEmpty && next.fresh() == s.fresh()
			case e == readMoves:
				holds = next == readContinues
			case e == readDrained:
				holds = next == readAsksEnd
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, s)
			}
		}
	}
}

// Of what the leader says, what presence knows and what was read, one function decides whether something may be lost.
func TestWhatMayBeLostIsDecidedByFewFacts(t *testing.T) {
	t.Parallel()
	const full, kept = 10, 3 // records that a mailbox keeps at most, and that it has
	now := time.Now()
	b := &Broker{cfg: Config{MaxRecords: full}}
	b.log = jslog.New(nil, nil, nil, jslog.Config{MaxAge: time.Hour, MaxRecords: full, Clock: jslog.NewClock(time.Now, nil, nil)})
	leader := func(count int64, last uint64) jslog.State {
		return jslog.State{Created: now.Add(-24 * time.Hour), Count: count, Last: last}
	}
	anew := jslog.State{Created: now.Add(-time.Minute), Count: kept, Last: 9}
	lately, long := now.Add(-10*time.Minute), now.Add(-2*time.Hour)
	had := func(seq uint64, at time.Time) inboxComplete { return inboxComplete{tail: seq << 8, at: at} }
	for name, c := range map[string]struct {
		seq    uint64 // of the position; 0 for none
		had    inboxComplete
		quiet  bool
		leader jslog.State
		read   int // records
		want   bool
	}{
		"it had all lately":                          {5, had(5, lately), false, leader(kept, 9), kept, false},
		"it had all long ago":                        {5, had(5, long), false, leader(kept, 9), kept, true},
		"it had all long ago, and nothing was sent":  {5, had(5, long), true, leader(kept, 9), kept, false},
		"nobody knows when it had all":               {5, had(0, time.Time{}), false, leader(kept, 9), kept, true},
		"nothing is stored since":                    {5, had(5, long), false, leader(0, 5), 0, false},
		"it lacked something":                        {5, had(6, lately), true, leader(0, 9), 0, true},
		"it lacked something, and that is the end":   {5, had(6, lately), true, leader(0, 5), 0, true},
		"the mailbox is full":                        {5, had(5, lately), true, leader(full, 90), full, true},
		"the log was made since":                     {5, had(5, now.Add(-2*time.Minute)), false, anew, kept, true},
		"the log was made before":                    {5, had(5, now.Add(-time.Second)), false, anew, kept, false},
		"nothing, of which nobody knows more":        {0, had(0, time.Time{}), false, leader(kept, 9), kept, false},
		"nothing, of a mailbox that is full":         {0, had(0, time.Time{}), false, leader(full, 90), full, true},
		"nothing, of one from which not all is read": {0, had(0, lately), false, leader(full, 90), full - 1, false},
		"nothing, as there was nothing long ago":     {0, had(0, long), false, leader(kept, 9), kept, true},
		"nothing, as there was nothing lately":       {0, had(0, lately), false, leader(kept, 9), kept, false},
	} {
		i := Inbox{b: b, complete: c.had, reading: inboxReading{state: readBegins, quiet: c.quiet, after: c.seq << 8}}
		i.end.seq = c.seq
		p := jslog.Page{Records: slices.Repeat([]jslog.Record{{}}, c.read)}
		if got := i.mayHaveLost(c.leader, &p); got != c.want {
			t.Errorf("%s: something may be lost: %t, want %t", name, got, c.want)
		}
	}
}

// Every state of an inbox meets every event: what it may have missed it reads, whatever comes live meanwhile, and a reader that was told that there is nothing is
// woken by the next thing, once.
func TestAnInboxReadsWhatItMayHaveMissed(t *testing.T) {
	for s := range inboxStates {
		for e := range inboxEvents {
			i := Inbox{state: s}
			wakes := i.hears(e)
			if i.state >= inboxStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, i.state, s)
			}
			var holds bool
			switch next := i.state; {
			case s == inboxClosed || e == inboxCloses:
				holds = next == inboxClosed && !wakes
			case e == inboxMisses:
				holds = next.lags() && (next == inboxStages) == (s == inboxStages) && wakes == (s == inboxIdle)
			case e == inboxCatches:
				holds = !next.lags() && !wakes
			case s.lags(): // only the log's end makes it live
				holds = next.lags() && (next == inboxStages) == (s == inboxStages || e == inboxNears) && !wakes
			case e == inboxDrains:
				holds = next == inboxIdle && !wakes
			case e == inboxQueues:
				holds = next == inboxLive && wakes == (s == inboxIdle)
			default:
				holds = next == s && !wakes
			}
			if !holds {
				t.Errorf("event %d makes %v of %v, and wakes %t", e, i.state, s, wakes)
			}
		}
	}
}
