package relay

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

func TestRefusedStreamsAreRememberedUpToABound(t *testing.T) {
	var p pastStreams
	key := func(i int) streamKey { return streamKey{agora.ToAgent("t", "a"), strconv.Itoa(i)} }
	for i := range remembered + 10 {
		p.silence(key(i), 0)
		p.silence(key(i), 0) // twice is once
	}
	if p.isSilent(key(9)) || !p.isSilent(key(10)) || !p.isSilent(key(remembered+9)) {
		t.Errorf("9 is silent: %v, 10: %v, %d: %v; want the newest %d", p.isSilent(key(9)), p.isSilent(key(10)), remembered+9, p.isSilent(key(remembered+9)), remembered)
	}
	if len(p.order) != remembered || len(p.all) != remembered || p.silent != remembered {
		t.Errorf("keeps %d in order, %d in all, %d silent; want %d", len(p.order), len(p.all), p.silent, remembered)
	}
	p.speak(key(10))
	if p.isSilent(key(10)) || p.silent != remembered-1 {
		t.Errorf("a stream that speaks again is silent: %v, with %d others", p.isSilent(key(10)), p.silent)
	}
}

func TestACancelByItsNumberSilencesWhatStandsBehindIt(t *testing.T) {
	cancelled, refused := streamKey{agora.ToAgent("t", "a"), "cancelled"}, streamKey{agora.ToAgent("t", "a"), "refused"}
	var p pastStreams
	p.silence(refused, 0)
	if !p.silence(cancelled, 5) || p.silence(cancelled, 7) || p.silence(refused, 5) {
		t.Error("a stream was silenced twice, or not at all")
	}
	for _, x := range []struct {
		k    streamKey
		n    uint64
		want bool
	}{{cancelled, 4, false}, {cancelled, 6, true}, {cancelled, 0, true}, {refused, 4, true}} {
		if got := p.drops(x.k, agora.Chunk, x.n); got != x.want {
			t.Errorf("chunk %d of the %s stream is dropped: %v, want %v", x.n, x.k.stream, got, x.want)
		}
	}
}

func TestRequestsAndStreamsHaveNamesApart(t *testing.T) {
	if id, ok := requestID(requestStream("q")); !ok || id != "q" {
		t.Errorf("requestID(requestStream(q)) = %q, %v; want q, true", id, ok)
	}
	for _, stream := range []string{"", "q", "stream-1"} {
		if id, ok := requestID(stream); ok {
			t.Errorf("requestID(%q) = %q, true; want none", stream, id)
		}
	}
}

// Hundreds of parts may be under way when the first is refused: as many errors would close the connection.
func TestAStreamThatIsRefusedForGoodIsAnsweredOnce(t *testing.T) {
	k := streamKey{agora.ToAgent("t", "a"), "s"}
	s := new(Sender)
	s.relay = &Relay{}
	no := agora.Errorf(agora.StreamAborted, "over")
	for _, step := range []struct {
		part agora.Part
		err  error
		told bool
	}{
		{agora.Chunk, agora.Errorf(agora.Unavailable, "not now"), true},
		{agora.Chunk, agora.Errorf(agora.Unavailable, "not now"), true},
		{agora.Start, nil, true},
		{agora.Chunk, no, true},
		{agora.Chunk, no, false},
		{agora.Whole, no, true},
		{agora.End, no, false},
		{agora.Chunk, no, true}, // the end has ended the silence
	} {
		if step.part == agora.Start {
			s.dropped(k, step.part, 0)
		}
		told := false
		p := s.relay.pending.get()
		p.sender, p.key, p.part, p.asker = s, k, step.part, AskerFunc(func(Sent) { told = true })
		p.lane = &lane{peer: &peer{}}
		p.done(broker.Result{Err: step.err})
		if told != step.told {
			t.Errorf("%v with %v: told %t, want %t", step.part, step.err, told, step.told)
		}
	}
}

func TestAChunkOfAnOpenStreamIsSettledWithoutAllocating(t *testing.T) {
	k := streamKey{agora.ToAgent("t", "a"), "s"}
	told := 0
	s := new(Sender)
	s.relay, s.window.size, s.cfg = New(Config{}), 1<<20, SenderConfig{Claim: new(presence.Claim), Asker: AskerFunc(func(Sent) { told++ })}
	st := &stream{key: k, receipts: agora.Stored | agora.Delivered}
	s.uses(st, &lane{peer: &peer{}})
	put(&s.open, k, st)
	m := agora.Message{Part: agora.Chunk, To: k.to, Stream: k.stream, Body: []byte("token")}
	if n := testing.AllocsPerRun(100, func() {
		var o Options
		l, of, settle := s.goesOn(&k, &m, &o)
		if of != st {
			t.Fatalf("goesOn = %p, want the open stream", of)
		}
		if err := s.window.take(t.Context(), len(m.Body)+overhead); err != nil {
			t.Fatal(err)
		}
		settle(broker.Result{Size: len(m.Body)})
		s.release(l)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if told == 0 || s.window.held() != 0 || m.Meta.Receipts != agora.Delivered {
		t.Errorf("told %d times, %d bytes under way, receipts %b; want some, 0, %b", told, s.window.held(), m.Meta.Receipts, agora.Delivered)
	}
	s.end(k, st, nil)
	if l, _, _ := s.goesOn(&k, &m, new(Options)); l != nil {
		t.Error("a stream that has ended goes on")
	}
}

func TestWhatIsKeptOfAMessageIsUsedAgain(t *testing.T) {
	told := 0
	s := new(Sender)
	s.relay, s.window.size, s.cfg = &Relay{}, 1<<20, SenderConfig{Claim: new(presence.Claim), Asker: AskerFunc(func(Sent) { told++ })}
	k, l := streamKey{agora.ToAgent("t", "a"), ""}, &lane{peer: &peer{}}
	m := agora.Message{To: k.to, Body: []byte("token")}
	size := len(m.Body) + overhead
	if n := testing.AllocsPerRun(100, func() {
		if err := s.window.take(t.Context(), size); err != nil {
			t.Fatal(err)
		}
		s.keep(k, &m, Options{Frame: "id"}, l, nil, size).done(broker.Result{Size: len(m.Body)})
	}); n >= 1 { // a collection empties the pool
		t.Errorf("%v allocations, want 0", n)
	}
	if told == 0 || s.window.held() != 0 {
		t.Errorf("told %d times, %d bytes under way; want some, 0", told, s.window.held())
	}
}

// Each of an edge's tens of thousands of sessions has one, and most of them send nothing.
func TestASenderIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Sender{}); size > 320 {
		t.Errorf("a sender takes %d bytes before anything is sent, want 320 at most", size)
	}
}

// A deadline that passes after the reply has come, or after another request took its name, tells nobody anything.
func TestOnlyTheDeadlineOfWhatIsStillAskedCounts(t *testing.T) {
	told := 0
	s := new(Sender)
	s.relay, s.cfg.Asker = &Relay{}, AskerFunc(func(Sent) { told++ })
	to, first, second := agora.ToAgent("t", "a"), &stream{}, &stream{}
	k := streamKey{to, "r"}
	if !s.late(to, "r") {
		t.Error("somebody waits for a reply that nobody asked for")
	}
	put(&s.asked, k, first)
	if s.late(to, "r") {
		t.Error("nobody waits for the reply, although it was asked for")
	}
	put(&s.asked, k, second)
	s.expired(k, first, true)
	if told > 0 || s.late(to, "r") {
		t.Error("the deadline of a request that is over was told")
	}
}
