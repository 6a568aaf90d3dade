package ledger

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// What overflow took while the log was read is not taken for numbers that were passed over, nor for new, nor its streams for what they were.
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

// Whoever was refused a number for good may not have heard it, and says it again at another edge: that is not to be told that it is stored.
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
