package verify

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func kindsOf(listed []Violation) (kinds []string) {
	for _, v := range listed {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

// Numbers 1 to 3 are a stream, and 4 is whole.
func TestPartsOfAStreamMayStayAwayOnceBothEndsKnowThatItIsAborted(t *testing.T) {
	for name, c := range map[string]struct {
		come     []uint64
		sender   bool // knows that the stream is aborted
		receiver bool // is told so, behind what has come
		want     []string
	}{
		"whole":                       {[]uint64{1, 2, 3, 4}, false, false, nil},
		"a hole, and nobody knows":    {[]uint64{1, 3, 4}, false, false, []string{Lost}},
		"a hole, the sender knows":    {[]uint64{1, 4}, true, false, []string{Lost, Lost}},
		"a hole, the receiver knows":  {[]uint64{1, 4}, false, true, []string{Lost, Lost}},
		"a hole, both know":           {[]uint64{1, 4}, true, true, nil},
		"all of it, both know":        {[]uint64{4}, true, true, nil},
		"the end, the sender knows":   {[]uint64{1, 2}, true, false, []string{Lost}}, // of 4
		"what is whole is no part":    {[]uint64{1, 2, 3}, true, false, []string{Lost}},
		"it goes on all the same":     {[]uint64{1, 2, 3, 4}, true, false, nil},
		"a part comes late":           {[]uint64{2, 1, 3, 4}, true, false, []string{Reordered}},
		"a part comes twice":          {[]uint64{1, 1, 2, 3, 4}, true, false, []string{Duplicated}},
		"aborted, though it is whole": {[]uint64{1, 2, 3, 4}, true, true, []string{Broken}},
	} {
		t.Run(name, func(t *testing.T) {
			l, to := newTestLine(1)
			for n := range uint64(3) {
				l.Take(Sent{Kind: "chunk", Stream: 1, Ends: n == 2})
			}
			l.Take(Sent{Kind: "message"})
			if c.sender {
				l.Abort(1)
			}
			l.SetStored(4)
			for _, n := range c.come {
				kind := Kind("chunk")
				if n == 4 {
					kind = "message"
				}
				to[0].Arrived(kind, n, n)
			}
			if c.receiver {
				to[0].Aborted(1, false)
			}
			l.Close()
			if got := kindsOf(l.tally.listed); !slices.Equal(got, c.want) {
				t.Errorf("violations = %v, want %v", l.tally.listed, c.want)
			}
		})
	}
}

func TestWhatFollowsAnAbortIsUntrue(t *testing.T) {
	l, to := newTestLine(1)
	for range 3 {
		l.Take(Sent{Kind: "chunk", Stream: 7})
	}
	l.SetStored(3)
	to[0].Arrived("chunk", 1, 1)
	to[0].Aborted(7, false)
	to[0].Aborted(7, true) // as its edge marks it
	if l.tally.total > 0 {
		t.Fatalf("violations: %v", l.tally.listed)
	}
	to[0].Arrived("chunk", 2, 2)
	to[0].Aborted(7, false)
	if got := kindsOf(l.tally.listed); !slices.Equal(got, []string{Untrue, Broken}) {
		t.Errorf("violations = %v, want a part that follows, and a second abort", l.tally.listed)
	}
}

func TestALineKnowsHowFarItIs(t *testing.T) {
	l, to := newTestLine(1)
	for range 6 {
		l.Take(Sent{Kind: "message"})
	}
	l.Take(Sent{Kind: "chunk", Stream: 7})
	l.SetStored(2)
	l.Set(4, Unknown)
	far := func(made, settled, pending, wanted uint64) {
		t.Helper()
		if m, s, p, w := l.Made(), l.Settled(), l.Pending(4), l.Wanted(); m != made || s != settled || p != pending || w != wanted {
			t.Errorf("made %d, settled %d, pending from 4 on %d, wanted %d, want %d, %d, %d, %d", m, s, p, w, made, settled, pending, wanted)
		}
	}
	far(7, 2, 5, 7)
	l.SetStored(3)
	far(7, 4, 5, 7)
	l.Set(6, Unknown)
	l.Abort(7)
	far(7, 4, 5, 5)
	to[0].Arrived("message", 1, 1)
	to[0].Arrived("message", 5, 2)
	if last, passed := to[0].Last(), to[0].Passed(); last != 5 || passed != 3 {
		t.Errorf("last = %d, and %d passed over, want 5 and 3", last, passed)
	}
	l.SetStored(8)
	if got := kindsOf(l.tally.listed); !slices.Equal(got, []string{Lost, Lost, Untrue}) {
		t.Errorf("violations = %v, want 2 and 3 lost, and 8 never sent", l.tally.listed)
	}
}

// In a long run of streams that are aborted now and then nothing is a violation, but a part that is lost where only one
// end knows of an abort; and the line remembers no more than what is under way.
func TestAPartLostIsFoundAmongStreamsThatAreAborted(t *testing.T) {
	for try := range 100 {
		l, to := newTestLine(1)
		lost, fault := uint64(50+rand.IntN(50)), try%2 == 0
		for stream := uint64(1); stream <= 200; stream++ {
			hurt, first := fault && stream == lost, l.Made()+1
			aborted := !hurt && rand.IntN(3) == 0
			for part := range 4 {
				l.Take(Sent{Kind: "chunk", Stream: stream, Ends: part == 3})
			}
			sender := aborted || hurt && try%4 == 0 // of what is lost, one end at most knows
			if sender && rand.IntN(2) == 0 {
				l.Abort(stream)
			}
			if rand.IntN(2) == 0 {
				l.SetStored(first + uint64(rand.IntN(4)))
			}
			for part := range uint64(3) {
				if !hurt && (!aborted || rand.IntN(2) == 0) {
					to[0].Arrived("chunk", first+part, first+part)
				}
			}
			if aborted {
				to[0].Aborted(stream, false)
			} else {
				to[0].Arrived("chunk", first+3, first+3)
			}
			if sender {
				l.Abort(stream)
			}
			l.SetStored(first + 3)
		}
		l.Take(Sent{Kind: "message"})
		l.SetStored(801)
		to[0].Arrived("message", 801, 801)
		if len(l.items) > 0 || l.Owed() > 0 {
			t.Fatalf("%d are remembered, %d owed, want none", len(l.items), l.Owed())
		}
		l.Close()
		want := 0
		if fault {
			want = 3
		}
		if got := kindsOf(l.tally.listed); len(got) != want || slices.ContainsFunc(got, func(k string) bool { return k != Lost }) {
			t.Fatalf("violations = %v, want %d lost", l.tally.listed, want)
		}
	}
}
