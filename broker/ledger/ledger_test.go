package ledger

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// step is a part put into a ledger, and what must become of it.
type step struct {
	m    agora.Message
	want string // "stored", "again" or an error's code
}

func outcomeOf(v Verdict) string {
	switch {
	case v.Err != nil:
		return string(v.Err.Code)
	case v.Again:
		return "again"
	}
	return "stored"
}

func TestWhatMayFollow(t *testing.T) {
	const start, chunk, end, cancel = agora.Start, agora.Chunk, agora.End, agora.Cancel
	for name, steps := range map[string][]step{
		"a plain stream": {
			{part(start, "s", ""), "stored"}, {part(chunk, "s", ""), "stored"}, {part(end, "s", ""), "stored"},
			{part(chunk, "s", ""), "STREAM_NOT_FOUND"}, {part(end, "s", ""), "STREAM_NOT_FOUND"}, {part(start, "s", ""), "stored"},
		},
		"parts without a start": {
			{part(chunk, "s", ""), "STREAM_NOT_FOUND"}, {part(end, "s", ""), "STREAM_NOT_FOUND"}, {part(cancel, "s", ""), "STREAM_NOT_FOUND"},
		},
		"a second start": {
			{part(start, "s", ""), "stored"}, {part(start, "s", ""), "INVALID_REQUEST"}, {part(chunk, "s", ""), "stored"},
		},
		"another kind": {
			{part(start, "s", ""), "stored"}, {kind(agora.Reply, part(chunk, "s", "")), "INVALID_REQUEST"},
		},
		"an index sent again, left out, and again": {
			{indexed(start, "s", 0), "stored"}, {indexed(chunk, "s", 1), "stored"}, {indexed(start, "s", 0), "again"},
			{indexed(chunk, "s", 1), "again"}, {indexed(chunk, "s", 3), "INVALID_REQUEST"}, {indexed(chunk, "s", 2), "stored"},
			{part(chunk, "s", ""), "INVALID_REQUEST"}, {indexed(end, "s", 3), "stored"}, {indexed(end, "s", 3), "again"},
			{indexed(start, "s", 0), "again"}, {indexed(chunk, "s", 4), "STREAM_NOT_FOUND"},
		},
		"a start with an index": {{indexed(start, "s", 1), "INVALID_REQUEST"}},
		"an indexed stream cancelled without one": {
			{indexed(start, "s", 0), "stored"}, {part(cancel, "s", ""), "stored"}, {indexed(chunk, "s", 1), "again"}, {indexed(chunk, "s", 2), "STREAM_NOT_FOUND"},
		},
		"numbers": {
			{numbered(1, text("")), "stored"}, {numbered(2, text("")), "stored"}, {numbered(1, text("")), "again"}, {numbered(2, text("")), "again"},
			{numbered(5, text("")), "stored"}, {numbered(3, text("")), "INVALID_REQUEST"}, {numbered(4, text("")), "INVALID_REQUEST"}, {numbered(5, text("")), "again"},
		},
		"a number refused is not stored": {
			{numbered(1, part(chunk, "s", "")), "STREAM_NOT_FOUND"}, {numbered(2, text("")), "stored"}, {numbered(1, text("")), "INVALID_REQUEST"},
		},
		"a numbered client starts a stream anew": {
			{numbered(1, part(start, "s", "")), "stored"}, {numbered(2, part(end, "s", "")), "stored"}, {numbered(3, part(start, "s", "")), "stored"},
			{numbered(4, part(start, "s", "")), "INVALID_REQUEST"},
		},
		"ids": {
			{ided("a", text("")), "stored"}, {ided("a", text("")), "again"}, {ided("b", text("")), "stored"},
			{ided("c", part(start, "s", "")), "stored"}, {ided("c", part(start, "t", "")), "again"}, {part(end, "s", ""), "stored"},
			{ided("c", part(start, "s", "")), "again"}, {ided("d", part(start, "s", "")), "stored"},
		},
		"what is no stream": {
			{kind(agora.Control, part(cancel, "s", "")), "stored"}, {kind(agora.Receipt, text("")), "stored"}, {kind(agora.Roster, text("")), "stored"},
			{kind(agora.Event, text("")), "stored"}, {part(start, "s", ""), "stored"}, {kind(agora.Control, part(cancel, "s", "")), "stored"}, {part(chunk, "s", ""), "stored"},
		},
		"an abort by the edge": {
			{indexed(start, "s", 0), "stored"}, {part(agora.Abort, "s", "TIMEOUT"), "stored"}, {indexed(chunk, "s", 1), "STREAM_ABORTED"},
			{part(agora.Abort, "s", "TIMEOUT"), "STREAM_ABORTED"}, {part(start, "s", ""), "stored"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := Ledger{whole: true, exact: true}
			l.Begin()
			for i, s := range steps {
				m := s.m
				if got := outcomeOf(l.Take(&m, i, 1, time.Now())); got != s.want {
					t.Fatalf("step %d, %+v: %s, want %s", i, s.m, got, s.want)
				}
			}
		})
	}
}

func TestADuplicateLearnsTheFirst(t *testing.T) {
	l := Ledger{whole: true}
	l.Begin()
	a, n := ided("a", part(agora.Start, "first", "")), numbered(1, part(agora.Start, "other", ""))
	l.Take(&a, 0, 1, time.Now())
	l.Take(&n, 1, 1, time.Now())
	if v := l.Take(&a, 2, 1, time.Now()); v.At.Position(7) != 7<<8 {
		t.Fatalf("in the same record: %+v", v)
	}
	l.Commit(7, time.Now(), time.Minute)
	again := ided("a", part(agora.Start, "second", ""))
	if v := l.Take(&again, 0, 1, time.Now()); !v.Again || v.At.Stream != "first" || v.At.Position(9) != 7<<8 {
		t.Fatalf("by id: %+v", v)
	}
	again = numbered(1, part(agora.Start, "third", ""))
	if v := l.Take(&again, 0, 1, time.Now()); !v.Again || v.At.Stream != "other" || v.At.Position(9) != 7<<8|1 {
		t.Fatalf("by number: %+v", v)
	}
}

func TestARecordThatIsNotStoredLeavesNoTrace(t *testing.T) {
	l := Ledger{whole: true, exact: true}
	l.Begin()
	first := []agora.Message{indexed(agora.Start, "old", 0), numbered(1, ided("a", text("")))}
	for i := range first {
		l.Take(&first[i], i, 1, time.Now())
	}
	l.Commit(1, time.Now(), time.Minute)
	l.Begin()
	second := []agora.Message{indexed(agora.Chunk, "old", 1), numbered(3, ided("b", part(agora.Start, "new", "")))}
	for i := range second {
		if v := l.Take(&second[i], i, 1, time.Now()); !v.Store {
			t.Fatalf("%+v: %+v", second[i], v)
		}
	}
	l.Rollback()
	for i := range second {
		l.Lose(&second[i])
	}
	if l.lastN != 1 || len(l.holes) != 0 || l.open != 1 || len(l.idAges) != 1 {
		t.Fatalf("ledger = %+v", l)
	}
	later := numbered(4, text(""))
	v := l.Take(&later, 0, 1, time.Now())
	if outcomeOf(v) != "UNAVAILABLE" || v.Err.RetryAfter == 0 {
		t.Fatalf("number 4 overtakes number 3: %+v", v)
	}
	chunk := indexed(agora.Chunk, "old", 1)
	if got := outcomeOf(l.Take(&chunk, 0, 1, time.Now())); got != "UNAVAILABLE" {
		t.Fatalf("chunk over a hole: %s", got)
	}
	anew := numbered(3, ided("b", part(agora.Start, "new", "")))
	if got := outcomeOf(l.Take(&anew, 0, 1, time.Now())); got != "stored" {
		t.Fatalf("sent again: %s", got)
	}
	if got := outcomeOf(l.Take(&later, 0, 1, time.Now())); got != "stored" {
		t.Fatalf("number 4 after number 3: %s", got)
	}
}

func TestTheLedgerForgetsIdsAndEndedStreams(t *testing.T) {
	l := Ledger{}
	at := time.Now()
	for i := range maxEnded + 10 {
		l.Begin()
		name := string(rune(i + 1000))
		ms := []agora.Message{ided(name, part(agora.Start, name, "")), part(agora.End, name, "")}
		for k := range ms {
			l.Take(&ms[k], k, 1, at)
		}
		l.Commit(uint64(i+1), at, time.Minute)
	}
	if len(l.streams) > maxEnded || l.open != 0 {
		t.Fatalf("%d streams kept", len(l.streams))
	}
	l.Begin()
	l.Commit(maxEnded+11, at.Add(2*time.Minute), time.Minute)
	if len(l.ids) != 0 || len(l.idAges) != 0 {
		t.Fatalf("%d ids kept", len(l.ids))
	}
}

func TestOpenStreamsAreBounded(t *testing.T) {
	l := Ledger{}
	l.Begin()
	for i := range maxOpen {
		m := part(agora.Start, string(rune(i+1000)), "")
		l.Take(&m, 0, 1, time.Now())
	}
	m := part(agora.Start, "one more", "")
	v := l.Take(&m, 0, 1, time.Now())
	if outcomeOf(v) != "RATE_LIMITED" {
		t.Fatalf("got %+v", v)
	}
}

func TestWhatRetentionMayHaveTakenIsMarked(t *testing.T) {
	l := Ledger{unsure: time.Now().Add(time.Hour)}
	known := indexed(agora.Start, "known", 0)
	l.Fold(&known, 1, time.Now())
	l.Begin()
	for i, c := range []struct {
		m    agora.Message
		want bool
	}{
		{indexed(agora.Chunk, "known", 1), false}, {text(""), true}, {numbered(7, text("")), true}, {numbered(8, text("")), true},
		{indexed(agora.Start, "new", 0), true}, {indexed(agora.Chunk, "new", 1), true},
	} {
		if v := l.Take(&c.m, i, 1, time.Now()); !v.Store || c.m.Again != c.want {
			t.Errorf("%+v: %+v, want Again %v", c.m, v, c.want)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l := Ledger{whole: true, exact: true}
	start := indexed(agora.Start, "s", 0)
	l.Begin()
	l.Take(&start, 0, 1, time.Now())
	ms := []agora.Message{indexed(agora.Chunk, "s", 1)}
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		l.Begin()
		if v := l.Take(&ms[0], 0, 1, at); !v.Store {
			b.Fatal(v)
		}
		l.Commit(1, at, time.Minute)
		ms[0].Index++
	}
}

// Parts that are named by an id alone go on with their stream at whatever position that is at; said again they are known, and the stream proves that none is missing.
func TestAPartMayGoOnWithItsStreamAtWhateverPosition(t *testing.T) {
	var l Ledger
	take := func(m agora.Message) (agora.Message, Verdict) {
		m.Stream = "s"
		v := l.Take(&m, 0, 1, time.Now())
		return m, v
	}
	take(agora.Message{Part: agora.Start, Indexed: true})
	for i, id := range []string{"a", "b", "b", "c"} {
		m, v := take(agora.Message{ID: id, Part: agora.Chunk, Indexed: true, Index: agora.NextIndex})
		if again := i == 2; v.Again != again || v.Store == again {
			t.Errorf("part %d: %+v, want it again: %v", i, v, again)
		}
		if want := map[string]uint32{"a": 1, "b": 2, "c": 3}[id]; v.Store && m.Index != want {
			t.Errorf("part %q has index %d, want %d", id, m.Index, want)
		}
	}
	if !l.streams["s"].proven() {
		t.Error("the stream does not prove that no part is missing")
	}
	if m, v := take(agora.Message{ID: "end", Part: agora.End, Indexed: true, Index: agora.NextIndex}); !v.Store || m.Index != 4 {
		t.Errorf("the end: %+v at %d, want it stored at 4", v, m.Index)
	}
	var other Ledger
	m := agora.Message{Stream: "s", Part: agora.Start}
	other.Take(&m, 0, 1, time.Now())
	m = agora.Message{Stream: "s", ID: "a", Part: agora.Chunk, Indexed: true, Index: agora.NextIndex}
	if v := other.Take(&m, 0, 1, time.Now()); !v.Store || other.streams["s"].proven() {
		t.Errorf("in a stream that proves nothing: %+v, proven %v", v, other.streams["s"].proven())
	}
}

func TestAPartUnderAPassedOverNumberIsAnsweredAsItsStreamWas(t *testing.T) {
	var l Ledger
	now := time.Now()
	part := func(n uint64, p agora.Part, stream string) *agora.Message {
		return &agora.Message{N: n, Kind: agora.Request, Part: p, Stream: stream}
	}
	for _, m := range []*agora.Message{part(1, agora.Start, "s"), part(2, agora.Start, "other"), part(0, agora.Abort, "s"), part(5, agora.Chunk, "other")} {
		l.add(m, First{n: m.N}, 1, now)
	}
	for _, c := range []struct {
		m    *agora.Message
		want agora.Code
	}{
		{part(3, agora.Chunk, "s"), agora.StreamAborted},
		{part(4, agora.Chunk, "other"), agora.InvalidRequest},
		{part(4, agora.Start, "s"), agora.InvalidRequest},
	} {
		if v := l.known(c.m); v.Err == nil || v.Err.Code != c.want {
			t.Errorf("%+v: %+v, want %s", *c.m, v, c.want)
		}
	}
}

func TestAMessageInDoubtIsKnownByItsKeyThoughAnEdgeStampsItAnew(t *testing.T) {
	var l Ledger
	now := time.Now()
	m := agora.Message{ID: "p", N: 1, Kind: agora.Event, Body: []byte(`{"timestamp":1}`)}
	l.Doubt(&m)
	l.Take(&m, 0, 1, now) // it was stored after all
	m.Body = []byte(`{"timestamp":2}`)
	if v := l.known(&m); !v.Again {
		t.Errorf("the same event a second later: %+v, want a duplicate", v)
	}
	m.ID = "q"
	if v := l.known(&m); v.Err == nil || v.Err.Code != agora.InvalidRequest {
		t.Errorf("another one: %+v, want INVALID_REQUEST", v)
	}
}

func TestARefusedNumberThatTheLogShowsIsNotWaitedFor(t *testing.T) {
	var l Ledger
	now := time.Now()
	l.Begin()
	l.Lose(&agora.Message{N: 3})
	l.Begin()
	m := agora.Message{N: 3, Body: []byte("again")}
	if v := l.Take(&m, 0, 1, now); !v.Store {
		t.Fatalf("3 again: %+v, want it stored", v)
	}
	l.Rollback()       // its fate is unknown
	l.Fold(&m, 1, now) // and the log has it
	if v := l.Take(&agora.Message{N: 4}, 0, 1, now); !v.Store {
		t.Errorf("4: %+v, want it stored", v)
	}
}
