package ledger

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// What overflow took while the log was read is not taken for numbers that were passed over, nor for new, nor its
// streams for what they were.
func TestATornReadingProvesNothingOfWhatStoodBehindIt(t *testing.T) {
	now := time.Now()
	l := New(false)
	fold := func(seq uint64, m agora.Message) {
		m.Seq = seq << agora.SeqShift
		l.Fold(&m, 1, now)
	}
	fold(1, agora.Message{N: 1, Kind: agora.Request, Part: agora.Start, Stream: "s"})
	fold(2, agora.Message{N: 2, Kind: agora.Request, Part: agora.Chunk, Stream: "s"})
	fold(3, agora.Message{Kind: agora.Request, Part: agora.Start, Stream: "i", Indexed: true})
	l.Tear()
	l.Inherit(Heritage{Cut: true, Unsure: now.Add(time.Minute), Aged: func(OpenStream) bool { return false }})
	for n := uint64(3); n <= 4; n++ { // may have been stored before
		m := agora.Message{N: n, Kind: agora.Request, Part: agora.Chunk, Stream: "s"}
		l.Begin()
		if v := l.Take(&m, 0, 2, now); !v.Store || !m.Again {
			t.Errorf("number %d: %+v, marked %t; want it stored and marked", n, v, m.Again)
		}
	}
	for index := uint32(2); index <= 3; index++ {
		m := agora.Message{Kind: agora.Request, Part: agora.Chunk, Stream: "i", Index: index, Indexed: true}
		l.Begin()
		if v := l.Take(&m, 0, 2, now); !v.Store || !m.Again {
			t.Errorf("index %d: %+v, marked %t; want it stored and marked", index, v, m.Again)
		}
	}
	l.breakStream("s")
	if m := l.Abort("s", 2); !m.Again {
		t.Error("the abort of a stream that may have ended is not marked")
	}

	l = New(false)
	fold(1, agora.Message{N: 1})
	l.Tear()
	fold(9, agora.Message{N: 5})
	l.Inherit(Heritage{Cut: true, Unsure: now.Add(time.Minute), Aged: func(OpenStream) bool { return false }})
	if m := (agora.Message{N: 3}); !l.Take(&m, 0, 2, now).Again {
		t.Error("a number below one that is stored is taken for one that was passed over")
	}
	if m := (agora.Message{N: 6}); !l.Take(&m, 0, 2, now).Store || m.Again {
		t.Error("a number beyond the last one that was read is marked, though all behind that was read")
	}
}

// Anyone who was refused a number permanently may not have heard it, and says it again at another edge: that is not to
// be told that it is stored.
func TestAnHeirKnowsThatNumbersBelowTheFirstWereNotStored(t *testing.T) {
	aged := func(OpenStream) bool { return false }
	for name, c := range map[string]struct {
		read []uint64
		torn bool // something may be gone behind what was read first
		cut  bool
		says []step
	}{
		"from the beginning": {[]uint64{3, 4}, false, false, []step{
			{numbered(1, text("")), "INVALID_REQUEST"}, {numbered(2, text("")), "INVALID_REQUEST"}, {numbered(3, text("")), "again"}, {numbered(5, text("")), "stored"},
		}},
		"nothing":                 {nil, false, false, []step{{numbered(3, text("")), "stored"}, {numbered(2, text("")), "INVALID_REQUEST"}}},
		"all of it":               {[]uint64{1, 2}, false, false, []step{{numbered(1, text("")), "again"}}},
		"what retention has left": {[]uint64{3, 4}, false, true, []step{{numbered(2, text("")), "again"}}},
		"what retention has left while it was read": {[]uint64{3, 7}, true, false, []step{{numbered(2, text("")), "again"}, {numbered(5, text("")), "again"}}},
	} {
		l := New(false)
		for i, n := range c.read {
			m := numbered(n, text(""))
			if l.Fold(&m, 1, time.Now()); i == 0 && c.torn {
				l.Tear()
			}
		}
		l.Inherit(Heritage{Cut: c.cut, Aged: aged})
		l.Begin()
		for i, s := range c.says {
			if got := outcomeOf(l.Take(&s.m, i, 2, time.Now())); got != s.want {
				t.Errorf("%s: number %d: %s, want %s", name, s.m.N, got, s.want)
			}
		}
	}
}

// A holder to whom retention had cut the log stores with a mark what comes again. The session moves on before all of it
// has come: the next holder reads marked parts alone, and can't know either whether what follows them was stored before
// the cut.
func TestAnHeirOfMarkedPartsMarksWhatFollowsThem(t *testing.T) {
	now := time.Now()
	again := func(m agora.Message) agora.Message { m.Again = true; return m }
	for name, c := range map[string]struct {
		read []agora.Message
		m    agora.Message
		want bool
	}{
		"a number":                         {[]agora.Message{again(numbered(3, text("")))}, numbered(4, text("")), true},
		"a number behind one of a stream":  {[]agora.Message{again(numbered(3, part(agora.Start, "s", "")))}, numbered(4, part(agora.Chunk, "s", "")), true},
		"a number behind one that was new": {[]agora.Message{again(numbered(3, text(""))), numbered(4, text(""))}, numbered(5, text("")), false},
		"an index":                         {[]agora.Message{again(indexed(agora.Start, "s", 0))}, indexed(agora.Chunk, "s", 1), true},
		"an index behind one that was new": {
			[]agora.Message{again(indexed(agora.Start, "s", 0)), indexed(agora.Chunk, "s", 1)}, indexed(agora.Chunk, "s", 2), false,
		},
		"an id":           {[]agora.Message{again(ided("a", text("")))}, ided("b", text("")), true},
		"an id of others": {[]agora.Message{ided("a", text(""))}, ided("b", text("")), false},
		"another stream":  {[]agora.Message{again(indexed(agora.Start, "s", 0))}, indexed(agora.Start, "other", 0), true},
	} {
		l := New(false)
		for i := range c.read {
			c.read[i].Seq = uint64(i+1) << agora.SeqShift
			l.Fold(&c.read[i], 1, now)
		}
		l.Inherit(Heritage{Unsure: now.Add(time.Minute), Aged: func(OpenStream) bool { return false }})
		l.Begin()
		if v := l.Take(&c.m, 0, 2, now); !v.Store || c.m.Again != c.want {
			t.Errorf("%s: %+v, marked %t; want it stored and marked %t", name, v, c.m.Again, c.want)
		}
	}
}

// A lane that was put aside and reads the log again knows no more of its numbers than it did.
func TestALaneThatWasPutAsideIsNoSurerOfItsNumbers(t *testing.T) {
	now := time.Now()
	l := New(false)
	m := agora.Message{N: 3, Again: true, Seq: 1 << agora.SeqShift}
	l.Fold(&m, 1, now)
	h := Heritage{Unsure: now.Add(time.Minute), Aged: func(OpenStream) bool { return false }}
	l.Inherit(h)
	p, _, ok := l.Park(now, time.Minute)
	if !ok {
		t.Fatal("a lane with nothing open can't be put aside")
	}
	l = p.Unpark()
	l.Fold(&m, 1, now)
	l.Inherit(h)
	l.Begin()
	if next := (agora.Message{N: 4}); !l.Take(&next, 0, 1, now).Store || !next.Again {
		t.Error("a number behind a marked one is taken for new")
	}
}

// A sender lost its receipts and comes back in time, and retention has taken all of its stream: whether that had ended
// nobody can tell. Both ends hear that it is over, the receiver by a part that is marked, as it may have had the end;
// and nothing that follows is another answer.
func TestAStreamThatRetentionHasTakenWholeIsAbortedOnce(t *testing.T) {
	now := time.Now()
	inherited := func(cut bool) Ledger {
		l := New(false)
		l.Inherit(Heritage{Cut: cut, Unsure: now.Add(time.Minute), Aged: func(OpenStream) bool { return false }})
		l.Begin()
		return l
	}
	for name, m := range map[string]agora.Message{
		"a chunk": indexed(agora.Chunk, "s", 3), "an end": indexed(agora.End, "s", 9), "a number": numbered(4, part(agora.Chunk, "s", "")),
		"a part that proves nothing": part(agora.Chunk, "s", ""), "a cancel": part(agora.Cancel, "s", ""), "a reply": kind(agora.Reply, indexed(agora.Chunk, "s", 3)),
	} {
		l := inherited(true)
		v := l.Take(&m, 0, 2, now)
		if outcomeOf(v) != "STREAM_ABORTED" || !v.Abort || v.Store {
			t.Errorf("%s: %+v, want it refused and an abort in its place", name, v)
		}
		if a := l.Abort("s", 2); !a.Again || a.Kind != m.Kind || a.Part != agora.Abort {
			t.Errorf("%s: the receiver gets %+v, want a marked abort of its kind", name, a)
		}
		next := m
		next.Part, next.Index = agora.Chunk, m.Index+1
		if v := l.Take(&next, 1, 2, now); outcomeOf(v) != "STREAM_ABORTED" || v.Abort {
			t.Errorf("behind %s: %+v, want it refused and no other abort", name, v)
		}
		if start := indexed(agora.Start, "s", 0); !l.Take(&start, 1, 2, now).Store {
			t.Errorf("behind %s no stream of that name can begin", name)
		}
		whole, late := inherited(false), inherited(true)
		again := m
		if v := whole.Take(&again, 0, 2, now); outcomeOf(v) != "STREAM_NOT_FOUND" {
			t.Errorf("%s, where all of the log is there: %+v", name, v)
		}
		if v := late.Take(&again, 0, 2, now.Add(2*time.Minute)); outcomeOf(v) != "STREAM_NOT_FOUND" {
			t.Errorf("%s, which can't come again any more: %+v", name, v)
		}
	}
}
