package verify

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// newTestLine returns a line to so many receivers.
func newTestLine(receivers int) (*Line, []*Track) {
	var tracks []*Track
	for range receivers {
		tracks = append(tracks, NewTrack("bob", &Gaps{}))
	}
	return NewLine(newTestTally(), "alice to bob", 100, tracks...), tracks
}

func newTestTally() *Tally { return New(time.Now, "message", "chunk", "stream", "end") }

// counted is what a line should have counted.
type counted struct {
	delivered, told             uint64
	lost, duplicated, reordered int64
	violations                  []string
}

func (l *Line) counted() counted {
	c := l.tally.counts["message"].Counts
	got := counted{c.Delivered, c.Told, c.Lost, c.Duplicated, c.Reordered, nil}
	for _, v := range l.tally.listed {
		got.violations = append(got.violations, v.Kind)
	}
	return got
}

func (c counted) check(t *testing.T, want counted) {
	t.Helper()
	if !slices.Equal(c.violations, want.violations) {
		t.Errorf("violations = %v, want %v", c.violations, want.violations)
	}
	c.violations, want.violations = nil, nil
	if c.delivered != want.delivered || c.told != want.told || c.lost != want.lost ||
		c.duplicated != want.duplicated || c.reordered != want.reordered {
		t.Errorf("counted %+v, want %+v", c, want)
	}
}

func TestALineFindsWhatIsLostDoubledOrOutOfOrder(t *testing.T) {
	const ok, no, who = Stored, Refused, Unknown
	for name, c := range map[string]struct {
		results []Outcome // of 1, 2, 3 …
		come    []uint64  // in this order
		early   bool      // they come before the results do
		gap     bool      // is told at positions 15 to 25; number n has position 10n
		want    counted
	}{
		"all arrives":              {[]Outcome{ok, ok, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3}},
		"all arrives early":        {[]Outcome{ok, ok, ok}, []uint64{1, 2, 3}, true, false, counted{delivered: 3}},
		"one is passed over":       {[]Outcome{ok, ok, ok}, []uint64{1, 3}, false, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"one is passed over early": {[]Outcome{ok, ok, ok}, []uint64{1, 3}, true, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"the last never comes":     {[]Outcome{ok, ok, ok}, []uint64{1, 2}, false, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"nothing comes":            {[]Outcome{ok, ok}, nil, false, false, counted{lost: 2, violations: []string{Lost, Lost}}},
		"one comes twice":          {[]Outcome{ok, ok}, []uint64{1, 1, 2}, false, false, counted{delivered: 2, duplicated: 1, violations: []string{Duplicated}}},
		"one comes twice, late":    {[]Outcome{ok, ok}, []uint64{1, 2, 1}, true, false, counted{delivered: 2, duplicated: 1, violations: []string{Duplicated}}},
		"two are swapped":          {[]Outcome{ok, ok, ok}, []uint64{2, 1, 3}, false, false, counted{delivered: 3, reordered: 1, violations: []string{Lost, Reordered}}},
		"two are swapped early":    {[]Outcome{ok, ok, ok}, []uint64{2, 1, 3}, true, false, counted{delivered: 3, reordered: 1, violations: []string{Reordered}}},
		"late, and again":          {[]Outcome{ok, ok}, []uint64{2, 1, 1}, true, false, counted{delivered: 2, reordered: 1, duplicated: 1, violations: []string{Reordered, Duplicated}}},
		"one is refused":           {[]Outcome{ok, no, ok}, []uint64{1, 3}, false, false, counted{delivered: 2}},
		"one is refused later":     {[]Outcome{ok, no, ok}, []uint64{1, 3}, true, false, counted{delivered: 2}},
		"one refused comes":        {[]Outcome{ok, no, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3, violations: []string{Untrue}}},
		"one refused came":         {[]Outcome{ok, no, ok}, []uint64{1, 2, 3}, true, false, counted{delivered: 3, violations: []string{Untrue}}},
		"the unknown comes":        {[]Outcome{ok, who, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3}},
		"the unknown stays away":   {[]Outcome{ok, who, ok}, []uint64{1, 3}, false, false, counted{delivered: 2}},
		"the unknown comes late":   {[]Outcome{ok, who, ok}, []uint64{1, 3, 2}, false, false, counted{delivered: 3, reordered: 1, violations: []string{Reordered}}},
		"a gap tells of it":        {[]Outcome{ok, ok, ok}, []uint64{1, 3}, false, true, counted{delivered: 2, told: 1}},
		"a gap tells of it early":  {[]Outcome{ok, ok, ok}, []uint64{1, 3}, true, true, counted{delivered: 2, told: 1}},
		"a gap elsewhere":          {[]Outcome{ok, ok, ok, ok}, []uint64{1, 2, 4}, false, true, counted{delivered: 3, told: 1}},
		"a gap before":             {[]Outcome{ok, ok, ok, ok, ok}, []uint64{1, 2, 3, 5}, false, true, counted{delivered: 4, lost: 1, violations: []string{Lost}}},
		"a gap at the end":         {[]Outcome{ok, ok}, []uint64{1}, false, true, counted{delivered: 1, told: 1}},
		"what nobody sent":         {[]Outcome{ok}, []uint64{1, 7, 0}, false, false, counted{delivered: 1, violations: []string{Altered, Altered}}},
	} {
		t.Run(name, func(t *testing.T) {
			l, to := newTestLine(1)
			for range c.results {
				l.Take(Sent{Kind: "message"})
			}
			if c.gap {
				to[0].gaps.Add(15, 25)
			}
			results := func() {
				for i, r := range c.results {
					l.Set(uint64(i+1), r)
				}
			}
			if !c.early {
				results()
			}
			for _, n := range c.come {
				to[0].Arrived("message", n, 10*n)
			}
			results()
			l.Close()
			l.counted().check(t, c.want)
		})
	}
}

func TestALineToManyChecksEach(t *testing.T) {
	l, to := newTestLine(3)
	for n := range uint64(3) {
		l.Take(Sent{Kind: "message"})
		l.Set(n+1, Stored)
	}
	for _, at := range []struct {
		who int
		n   uint64
	}{{0, 1}, {0, 2}, {1, 1}, {1, 3}, {0, 3}, {2, 1}, {2, 1}} {
		to[at.who].Arrived("message", at.n, at.n)
	}
	if got := l.Owed(); got != 2 { // 2 and 3 at the third
		t.Errorf("owed = %d, want 2", got)
	}
	l.Close()
	l.counted().check(t, counted{delivered: 6, lost: 3, duplicated: 1, violations: []string{Lost, Duplicated, Lost, Lost}})
}

func TestALineRemembersOnlyWhatIsUnderWay(t *testing.T) {
	l, to := newTestLine(2)
	most := 0
	for range 100_000 {
		n := l.Take(Sent{Kind: "message"})
		r := []Outcome{Stored, Stored, Stored, Refused, Unknown}[rand.IntN(5)]
		if rand.IntN(2) == 0 {
			l.Set(n, r)
		}
		for _, track := range to {
			if r == Stored || r == Unknown && rand.IntN(2) == 0 {
				track.Arrived("message", n, n)
			}
		}
		l.Set(n, r)
		most = max(most, len(l.items), len(to[0].skips))
	}
	for range 100_000 {
		l.Set(l.Take(Sent{Kind: "message"}), Unknown)
		most = max(most, len(l.items))
	}
	if l.tally.total > 0 {
		t.Errorf("violations: %v", l.tally.listed)
	}
	if limit := 8*l.window + maxRecent + 1; most > limit {
		t.Errorf("remembered %d, want at most %d", most, limit)
	}
}

// One fault in a long run of what may happen is found, and nothing else is.
func TestOneFaultIsFoundAmongWhatMayHappen(t *testing.T) {
	for _, fault := range []string{"", Lost, Duplicated, Reordered, Untrue} {
		for range 200 {
			l, to := newTestLine(1)
			at := uint64(50 + rand.IntN(50))
			var held []uint64
			for n := uint64(1); n <= 200; n++ {
				l.Take(Sent{Kind: "message"})
				r := []Outcome{Stored, Stored, Refused, Unknown}[rand.IntN(4)]
				if n >= at && n <= at+1 {
					r = Stored
				}
				if n == at && fault == Untrue {
					r = Refused
				}
				if rand.IntN(2) == 0 {
					l.Set(n, r)
				}
				comes := r == Stored || r == Unknown && rand.IntN(2) == 0 || n == at && fault == Untrue
				switch {
				case n == at && fault == Reordered:
					held = append(held, n)
				case comes && !(n == at && fault == Lost):
					to[0].Arrived("message", n, n)
				}
				if n == at && fault == Duplicated {
					to[0].Arrived("message", n, n)
				}
				if n == at+1 && len(held) > 0 {
					to[0].Arrived("message", held[0], n)
				}
				l.Set(n, r)
			}
			l.Close()
			kinds := l.counted().violations
			if fault == "" && len(kinds) > 0 || fault != "" && (len(kinds) == 0 || kinds[len(kinds)-1] != fault) {
				t.Fatalf("violations = %v, want %q", l.tally.listed, fault)
			}
		}
	}
}

func TestMembersWithTwoOrdersAreFound(t *testing.T) {
	tally := newTestTally()
	o := NewOrder(tally, "lobby")
	tracks := map[string]*Track{}
	for _, publisher := range []string{"alice", "bob"} {
		m, n := NewTrack("m", &Gaps{}), NewTrack("n", &Gaps{})
		NewLine(tally, publisher, 10, m, n)
		tracks["m of "+publisher], tracks["n of "+publisher] = m, n
	}
	for _, see := range []struct {
		track string
		n     uint64
	}{
		{"m of alice", 1}, {"m of bob", 1}, {"n of alice", 1}, {"n of alice", 2}, {"m of alice", 2}, {"m of bob", 2}, {"n of bob", 2},
	} {
		o.Saw(tracks[see.track], "message", see.n)
	}
	if tally.total != 0 { // n missed one, which its line tells
		t.Fatalf("violations: %v", tally.listed)
	}
	o.Saw(tracks["n of bob"], "message", 1)
	if tally.total != 1 || tally.listed[0].Kind != Reordered {
		t.Fatalf("violations = %v, want one of order", tally.listed)
	}
}

func TestAnOrderRemembersOnlyTheLatest(t *testing.T) {
	o, m, n := NewOrder(newTestTally(), "lobby"), NewTrack("m", &Gaps{}), NewTrack("n", &Gaps{})
	NewLine(o.tally, "alice", 10, m, n)
	for i := range uint64(3 * maxOrder) {
		o.Saw(m, "message", i)
		o.Saw(n, "message", i)
	}
	if len(o.ranks) > maxOrder || o.tally.total > 0 {
		t.Fatalf("%d ranks, %d violations, want at most %d and none", len(o.ranks), o.tally.total, maxOrder)
	}
}
