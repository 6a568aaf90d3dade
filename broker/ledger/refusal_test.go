package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func TestANumberThatIsPassedOverIsNotWaitedFor(t *testing.T) {
	var l Ledger
	now := time.Now()
	l.Begin()
	l.Lose(&agora.Message{N: 3})
	if v := l.known(&agora.Message{N: 4}); v.Err == nil || v.Err.Code != agora.Unavailable {
		t.Fatalf("4 behind a refused 3: %+v, want UNAVAILABLE", v)
	}
	l.Pass(3)
	if v := l.Take(&agora.Message{N: 4}, 0, 1, now); !v.Store {
		t.Errorf("4 once 3 is used up: %+v, want it stored", v)
	}
}

func TestANumberThatComesAgainWithAnIDThatIsStoredIsNotWaitedFor(t *testing.T) {
	var l Ledger
	now := time.Now()
	l.Begin()
	if v := l.Take(&agora.Message{N: 1, ID: "a"}, 0, 1, now); !v.Store {
		t.Fatalf("1: %+v, want it stored", v)
	}
	l.Lose(&agora.Message{N: 2})
	if v := l.Take(&agora.Message{N: 2, ID: "a"}, 1, 1, now); !v.Again {
		t.Fatalf("2 with the id of 1: %+v, want a duplicate", v)
	}
	if v := l.Take(&agora.Message{N: 3}, 1, 1, now); !v.Store {
		t.Errorf("3: %+v, want it stored", v)
	}
}

func TestAnotherMessageUnderANumberInDoubtIsNotTakenForTheFirst(t *testing.T) {
	var l Ledger
	now := time.Now()
	m := agora.Message{N: 1, Body: []byte("first")}
	l.Doubt(&m)
	l.Take(&m, 0, 1, now) // it was stored after all
	if v := l.known(&m); !v.Again {
		t.Errorf("the same message again: %+v, want a duplicate", v)
	}
	if v := l.known(&agora.Message{N: 1, Body: []byte("second")}); v.Err == nil || v.Err.Code != agora.InvalidRequest {
		t.Errorf("another one: %+v, want INVALID_REQUEST", v)
	}
}

// What was refused while the log could not be reached is remembered once for each stream.
func TestLossesAreRememberedOnceForEachStreamAndBounded(t *testing.T) {
	var l Ledger
	lose := func(n uint64, p agora.Part, stream string) {
		l.LoseLater(&agora.Message{N: n, Part: p, Stream: stream})
	}
	for _, n := range []uint64{0, 9, 7, 8} {
		lose(n, agora.Chunk, "s")
	}
	lose(0, agora.Whole, "")
	lose(6, agora.Start, "t")
	lose(5, agora.Start, "t")
	if want := []lost{{stream: "s", n: 7}, {stream: "t", n: 5, start: true, number: 6}}; !slices.Equal(l.lost, want) {
		t.Errorf("remembered are %+v, want %+v", l.lost, want)
	}
	for k := 0; !l.LostTooMuch(); k++ {
		if k > maxLost {
			t.Fatal("any number of streams is remembered")
		}
		lose(0, agora.Chunk, fmt.Sprint(k))
	}
	if len(l.lost) <= maxOpen {
		t.Errorf("%d streams are too much, and %d may be open", len(l.lost), maxOpen)
	}
}

// A stream that presence alone knows of, and whose start is refused under a number that the log has not come to, never
// began: it is owed no abort, and its start is no second one. Where the log does not tell, it is owed a marked one.
func TestAStreamWhoseStartTheNumbersDisproveIsOwedNoAbort(t *testing.T) {
	now := time.Now()
	start, chunk := numbered(2, part(agora.Start, "s", "start")), numbered(3, part(agora.Chunk, "s", "chunk"))
	refused := map[string]func(*Ledger, ...agora.Message){
		"at once": func(l *Ledger, ms ...agora.Message) {
			for i := range ms {
				l.Lose(&ms[i])
			}
		},
		"while the log is away": func(l *Ledger, ms ...agora.Message) {
			for i := range ms {
				l.LoseLater(&ms[i])
			}
			l.Settle()
		},
	}
	for how, refuse := range refused {
		for _, c := range []struct {
			name  string
			last  uint64 // the highest number in the log; 0 where nothing of the lane is left
			lost  []agora.Message
			owed  bool
			again bool // the start is stored with the mark; asked where it can be stored
		}{
			{"its start and more", 1, []agora.Message{start, chunk}, false, false},
			{"its start", 1, []agora.Message{start}, false, false},
			{"all but its start", 2, []agora.Message{chunk}, true, false},
			{"its start, which is stored", 2, []agora.Message{start, chunk}, true, false},
			{"all, and the log tells nothing", 0, []agora.Message{start, chunk}, true, true},
		} {
			var l Ledger
			if c.last > 0 {
				m := numbered(c.last, text("last"))
				l.Fold(&m, 1, now)
			}
			l.Inherit(Heritage{Cut: true, Unsure: now.Add(time.Hour), Open: []OpenStream{{Stream: "s", Indexed: true}}})
			l.Begin()
			refuse(&l, slices.Clone(c.lost)...)
			if got := l.OwesAborts(); got != c.owed {
				t.Errorf("%s is refused %s: an abort is owed: %v, want %v", c.name, how, got, c.owed)
			}
			for _, name := range l.NextAborts() {
				if a := l.Abort(name, 2); !a.Again {
					t.Errorf("%s is refused %s: its abort has no mark", c.name, how)
				}
			}
			if c.last >= 2 {
				continue
			}
			if m := start; !l.Take(&m, 0, 2, now).Store || m.Again != c.again {
				t.Errorf("%s is refused %s: its start comes again, marked: %v, want %v", c.name, how, m.Again, c.again)
			}
		}
	}
}

// A part in doubt has one of three fates: stored, its stream ends if its sender sends no more of it; not stored, its number is waited for; forgotten,
// it is marked when it comes again, and who may have read a start is owed an end.
func TestEachFateOfAPartInDoubtIsMadeGood(t *testing.T) {
	now := time.Now()
	start, chunk := part(agora.Start, "t", "start"), part(agora.Chunk, "s", "chunk")
	for _, c := range []struct {
		name   string
		m      agora.Message
		fate   Fate
		aborts []string // that are owed
		next   uint64
		marked bool // when it comes again
	}{
		{"a part, stored", chunk, Stored, []string{"s"}, 2, false},
		{"a number, stored", numbered(2, chunk), Stored, nil, 3, false},
		{"a part, not stored", chunk, NotStored, []string{"s"}, 2, false},
		{"a number, not stored", numbered(2, text("2")), NotStored, nil, 2, false},
		{"a start, not stored", start, NotStored, nil, 2, false},
		{"a number, forgotten", numbered(2, text("2")), Forgotten, nil, 2, true},
		{"an id, forgotten", ided("a", text("")), Forgotten, nil, 2, true},
		{"a start, forgotten", start, Forgotten, []string{"t"}, 2, true},
		{"a start with a number, forgotten", numbered(2, start), Forgotten, nil, 2, true},
	} {
		l := New(true)
		l.Begin()
		first := numbered(1, part(agora.Start, "s", ""))
		l.Take(&first, 0, 1, now)
		l.Commit(1, now, time.Minute)
		if l.Begin(); c.fate == Stored {
			stored := c.m
			l.Fold(&stored, 1, now)
		}
		l.Doubt(&c.m)
		l.Resolve(&c.m, c.fate, now.Add(time.Minute))
		if got := l.NextAborts(); !slices.Equal(got, c.aborts) || l.Next() != c.next {
			t.Errorf("%s: aborts of %v are owed, and %d is next; want %v and %d", c.name, got, l.Next(), c.aborts, c.next)
		}
		for _, name := range l.NextAborts() {
			l.Abort(name, 1)
		}
		if v := l.Take(&c.m, 1, 1, now); v.Store && c.m.Again != c.marked {
			t.Errorf("%s: it comes again, and is marked: %t, want %t", c.name, c.m.Again, c.marked)
		}
	}
}

// A number is forgotten, comes again, and that copy is not stored: the first one may have been, so the third is marked as the second was.
func TestWhatIsForgottenStaysInDoubtThoughItsNextCopyIsNotStored(t *testing.T) {
	now := time.Now()
	l := New(true)
	l.Begin()
	first := numbered(1, text("1"))
	l.Doubt(&first)
	l.Resolve(&first, Forgotten, now.Add(time.Minute))
	second := numbered(1, text("1"))
	if v := l.Take(&second, 0, 1, now); !v.Store || !second.Again {
		t.Fatalf("the second: %+v, marked %t; want it stored and marked", v, second.Again)
	}
	l.Rollback()
	l.Doubt(&second)
	l.Resolve(&second, NotStored, now.Add(time.Minute))
	other := numbered(1, text("another"))
	if v := l.Take(&other, 0, 1, now); v.Err == nil || v.Err.Code != agora.InvalidRequest {
		t.Errorf("another one: %+v, want INVALID_REQUEST", v)
	}
	if third := numbered(1, text("1")); !l.Take(&third, 0, 1, now).Store || !third.Again {
		t.Error("the third is not marked")
	}
}
