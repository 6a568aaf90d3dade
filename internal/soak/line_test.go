package soak

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// newTestLine returns a line to so many receivers.
func newTestLine(receivers int) (*line, []*track) {
	var tracks []*track
	for range receivers {
		tracks = append(tracks, &track{name: "bob", gaps: &gaps{}})
	}
	return newLine(newTally(), "alice to bob", 100, tracks...), tracks
}

// counted is what a line should have counted.
type counted struct {
	delivered, told             uint64
	lost, duplicated, reordered int64
	violations                  []string
}

func (l *line) counted() counted {
	c := l.tally.counts[message].counts()
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
	const ok, no, who = stored, refused, unknown
	for name, c := range map[string]struct {
		results []result // of 1, 2, 3 …
		come    []uint64 // in this order
		early   bool     // they come before the results do
		gap     bool     // is told at positions 15 to 25; number n has position 10n
		want    counted
	}{
		"all arrives":              {[]result{ok, ok, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3}},
		"all arrives early":        {[]result{ok, ok, ok}, []uint64{1, 2, 3}, true, false, counted{delivered: 3}},
		"one is passed over":       {[]result{ok, ok, ok}, []uint64{1, 3}, false, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"one is passed over early": {[]result{ok, ok, ok}, []uint64{1, 3}, true, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"the last never comes":     {[]result{ok, ok, ok}, []uint64{1, 2}, false, false, counted{delivered: 2, lost: 1, violations: []string{Lost}}},
		"nothing comes":            {[]result{ok, ok}, nil, false, false, counted{lost: 2, violations: []string{Lost, Lost}}},
		"one comes twice":          {[]result{ok, ok}, []uint64{1, 1, 2}, false, false, counted{delivered: 2, duplicated: 1, violations: []string{Duplicated}}},
		"one comes twice, late":    {[]result{ok, ok}, []uint64{1, 2, 1}, true, false, counted{delivered: 2, duplicated: 1, violations: []string{Duplicated}}},
		"two are swapped":          {[]result{ok, ok, ok}, []uint64{2, 1, 3}, false, false, counted{delivered: 3, reordered: 1, violations: []string{Lost, Reordered}}},
		"two are swapped early":    {[]result{ok, ok, ok}, []uint64{2, 1, 3}, true, false, counted{delivered: 3, reordered: 1, violations: []string{Reordered}}},
		"late, and again":          {[]result{ok, ok}, []uint64{2, 1, 1}, true, false, counted{delivered: 2, reordered: 1, duplicated: 1, violations: []string{Reordered, Duplicated}}},
		"one is refused":           {[]result{ok, no, ok}, []uint64{1, 3}, false, false, counted{delivered: 2}},
		"one is refused later":     {[]result{ok, no, ok}, []uint64{1, 3}, true, false, counted{delivered: 2}},
		"one refused comes":        {[]result{ok, no, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3, violations: []string{Untrue}}},
		"one refused came":         {[]result{ok, no, ok}, []uint64{1, 2, 3}, true, false, counted{delivered: 3, violations: []string{Untrue}}},
		"the unknown comes":        {[]result{ok, who, ok}, []uint64{1, 2, 3}, false, false, counted{delivered: 3}},
		"the unknown stays away":   {[]result{ok, who, ok}, []uint64{1, 3}, false, false, counted{delivered: 2}},
		"the unknown comes late":   {[]result{ok, who, ok}, []uint64{1, 3, 2}, false, false, counted{delivered: 3, reordered: 1, violations: []string{Reordered}}},
		"a gap tells of it":        {[]result{ok, ok, ok}, []uint64{1, 3}, false, true, counted{delivered: 2, told: 1}},
		"a gap tells of it early":  {[]result{ok, ok, ok}, []uint64{1, 3}, true, true, counted{delivered: 2, told: 1}},
		"a gap elsewhere":          {[]result{ok, ok, ok, ok}, []uint64{1, 2, 4}, false, true, counted{delivered: 3, told: 1}},
		"a gap before":             {[]result{ok, ok, ok, ok, ok}, []uint64{1, 2, 3, 5}, false, true, counted{delivered: 4, lost: 1, violations: []string{Lost}}},
		"a gap at the end":         {[]result{ok, ok}, []uint64{1}, false, true, counted{delivered: 1, told: 1}},
		"what nobody sent":         {[]result{ok}, []uint64{1, 7, 0}, false, false, counted{delivered: 1, violations: []string{Altered, Altered}}},
	} {
		t.Run(name, func(t *testing.T) {
			l, to := newTestLine(1)
			for range c.results {
				l.take(message, nil)
			}
			if c.gap {
				to[0].gaps.add(15, 25)
			}
			results := func() {
				for i, r := range c.results {
					l.set(uint64(i+1), r)
				}
			}
			if !c.early {
				results()
			}
			for _, n := range c.come {
				l.arrived(to[0], message, n, 10*n)
			}
			results()
			l.close()
			l.counted().check(t, c.want)
		})
	}
}

func TestALineToManyChecksEach(t *testing.T) {
	l, to := newTestLine(3)
	for n := range uint64(3) {
		l.take(message, nil)
		l.set(n+1, stored)
	}
	for _, at := range []struct {
		who int
		n   uint64
	}{{0, 1}, {0, 2}, {1, 1}, {1, 3}, {0, 3}, {2, 1}, {2, 1}} {
		l.arrived(to[at.who], message, at.n, at.n)
	}
	if got := l.owed(); got != 2 { // 2 and 3 at the third
		t.Errorf("owed = %d, want 2", got)
	}
	l.close()
	l.counted().check(t, counted{delivered: 6, lost: 3, duplicated: 1, violations: []string{Lost, Duplicated, Lost, Lost}})
}

func TestALineRemembersOnlyWhatIsUnderWay(t *testing.T) {
	l, to := newTestLine(2)
	most := 0
	for range 100_000 {
		n := l.take(message, nil)
		r := []result{stored, stored, stored, refused, unknown}[rand.IntN(5)]
		if rand.IntN(2) == 0 {
			l.set(n, r)
		}
		for _, track := range to {
			if r == stored || r == unknown && rand.IntN(2) == 0 {
				l.arrived(track, message, n, n)
			}
		}
		l.set(n, r)
		most = max(most, len(l.items), len(to[0].skips))
	}
	for range 100_000 {
		l.set(l.take(message, nil), unknown)
		most = max(most, len(l.items))
	}
	if l.tally.total > 0 {
		t.Errorf("violations: %v", l.tally.listed)
	}
	if limit := 8*l.window + maxSkips + 1; most > limit {
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
				l.take(message, nil)
				r := []result{stored, stored, refused, unknown}[rand.IntN(4)]
				if n >= at && n <= at+1 {
					r = stored
				}
				if n == at && fault == Untrue {
					r = refused
				}
				if rand.IntN(2) == 0 {
					l.set(n, r)
				}
				comes := r == stored || r == unknown && rand.IntN(2) == 0 || n == at && fault == Untrue
				switch {
				case n == at && fault == Reordered:
					held = append(held, n)
				case comes && !(n == at && fault == Lost):
					l.arrived(to[0], message, n, n)
				}
				if n == at && fault == Duplicated {
					l.arrived(to[0], message, n, n)
				}
				if n == at+1 && len(held) > 0 {
					l.arrived(to[0], message, held[0], n)
				}
				l.set(n, r)
			}
			l.close()
			kinds := l.counted().violations
			if fault == "" && len(kinds) > 0 || fault != "" && (len(kinds) == 0 || kinds[len(kinds)-1] != fault) {
				t.Fatalf("violations = %v, want %q", l.tally.listed, fault)
			}
		}
	}
}

func TestMembersWithTwoOrdersAreFound(t *testing.T) {
	tally := newTally()
	o, a, b := newOrder(tally, "lobby"), &line{name: "alice"}, &line{name: "bob"}
	for _, see := range []struct {
		member string
		line   *line
		n      uint64
	}{
		{"m", a, 1}, {"m", b, 1}, {"n", a, 1}, {"n", a, 2}, {"m", a, 2}, {"m", b, 2}, {"n", b, 2},
	} {
		o.saw(see.member, place{see.line, see.n})
	}
	if tally.total != 0 { // n missed one, which its line tells
		t.Fatalf("violations: %v", tally.listed)
	}
	o.saw("n", place{b, 1})
	if tally.total != 1 || tally.listed[0].Kind != Reordered {
		t.Fatalf("violations = %v, want one of order", tally.listed)
	}
}

func TestAnOrderRemembersOnlyTheLatest(t *testing.T) {
	o, a := newOrder(newTally(), "lobby"), &line{name: "alice"}
	for n := range uint64(3 * maxOrder) {
		o.saw("m", place{a, n})
		o.saw("n", place{a, n})
	}
	if len(o.places) > maxOrder || o.tally.total > 0 {
		t.Fatalf("%d places, %d violations, want at most %d and none", len(o.places), o.tally.total, maxOrder)
	}
}
