package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/pause"
)

// readBook is what a watch of the book has told.
type readBook struct {
	mu            sync.Mutex // guards the fields below
	all           map[uint64]Entry
	failed, whole int // looks that failed, and that did not
}

// readAlong watches a Broker's book until the test ends.
func readAlong(t *testing.T, b *Broker) *readBook {
	t.Helper()
	r := &readBook{all: map[uint64]Entry{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = b.Book().Watch(ctx, BookReader{Entry: r.entry, Gone: r.gone, Read: r.read})
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return r
}

func (r *readBook) entry(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[e.Seq] = e
}

func (r *readBook) gone(first uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for seq := range r.all {
		if seq < first {
			delete(r.all, seq)
		}
	}
}

func (r *readBook) read(_ uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
	} else {
		r.whole++
	}
}

// bodies returns what stands, in the order of the book.
func (r *readBook) bodies() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var seqs []uint64
	for seq := range r.all {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	var s []string
	for _, seq := range seqs {
		s = append(s, string(r.all[seq].Body))
	}
	return strings.Join(s, " ")
}

func (r *readBook) becomes(t *testing.T, want string) {
	t.Helper()
	if !await.Within(await.Long, func() bool { return r.bodies() == want }) {
		t.Fatalf("the book is read as %q, want %q", r.bodies(), want)
	}
}

func open(t *testing.T, b *Broker, name, body string) Entry {
	t.Helper()
	e, _, err := b.Book().Open(await.Context(t), Entry{Tenant: "default", Name: name, Body: []byte(body)})
	if err != nil {
		t.Fatalf("Open(%q) = %v", name, err)
	}
	return e
}

func TestWhatIsOpenedFirstStandsAndWhatIsDecidedFirst(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	ctx := await.Context(t)
	first, mine, err := a.Book().Open(ctx, Entry{Tenant: "default", Name: "x", Body: []byte("one")})
	if err != nil || !mine || string(first.Body) != "one" || first.Time.IsZero() {
		t.Fatalf("Open = %+v, %v, %v", first, mine, err)
	}
	again, mine, err := b.Book().Open(ctx, Entry{Tenant: "default", Name: "x", Body: []byte("two")})
	if err != nil || mine || again.Seq != first.Seq || string(again.Body) != "one" || !again.Time.Equal(first.Time) {
		t.Errorf("opened again: %+v, %v, %v; want what stands", again, mine, err)
	}
	if o, _, err := b.Book().Open(ctx, Entry{Tenant: "acme", Name: "x", Body: []byte("theirs")}); err != nil || string(o.Body) != "theirs" {
		t.Errorf("another tenant's record of that name: %+v, %v", o, err)
	}
	if o, d, err := b.Book().Get(ctx, "default", "x"); err != nil || o == nil || d != nil {
		t.Errorf("Get = %+v, %+v, %v, want it open", o, d, err)
	}
	d, mine, err := b.Book().Decide(ctx, again, []byte("yes"))
	if err != nil || !mine || d.Decides != first.Seq {
		t.Errorf("Decide = %+v, %v, %v", d, mine, err)
	}
	if d, mine, err := a.Book().Decide(ctx, first, []byte("no")); err != nil || mine || string(d.Body) != "yes" {
		t.Errorf("decided again: %+v, %v, %v; want yes", d, mine, err)
	}
	if _, d, err := a.Book().Get(ctx, "default", "x"); err != nil || d == nil || string(d.Body) != "yes" {
		t.Errorf("Get = %+v, %v, want yes", d, err)
	}
	if o, d, err := a.Book().Get(ctx, "default", "y"); o != nil || d != nil || err != nil {
		t.Errorf("Get of nothing = %+v, %+v, %v", o, d, err)
	}
	if _, _, err := a.Book().Decide(ctx, Entry{Tenant: "default", Name: "y", Seq: first.Seq}, nil); !errors.Is(err, ErrNotOpen) {
		t.Errorf("Decide of nothing = %v, want ErrNotOpen", err)
	}
}

func TestABookIsReadFromItsBeginningAndGoesOn(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	open(t, a, "1", "a")
	early := readAlong(t, b)
	early.becomes(t, "a")
	e := open(t, a, "2", "b")
	if _, _, err := a.Book().Decide(await.Context(t), e, []byte("c")); err != nil {
		t.Fatal(err)
	}
	early.becomes(t, "a b c")
	readAlong(t, a).becomes(t, "a b c")
	s.StopNode(0)
	await.True(t, "they are gone", func() bool { return !a.Connected() && !b.Connected() })
	await.True(t, "a look fails", func() bool {
		early.mu.Lock()
		defer early.mu.Unlock()
		return early.failed > 0 && early.whole > 0
	})
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	open(t, a, "3", "d")
	early.becomes(t, "a b c d")
}

// A hint that does not arrive delays, and nothing more; so do hints of what never was.
func TestABookIsReadWithoutHints(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a := testBroker(t, s, nil)
	r := readAlong(t, a)
	for _, hint := range []string{"", "x", "-1", fmt.Sprint(uint64(math.MaxUint64))} {
		if err := a.nc.Publish(jslog.BookHint, []byte(hint)); err != nil {
			t.Fatal(err)
		}
	}
	e := Entry{Tenant: "default", Name: "x", Body: []byte("a")}
	if _, err := a.js.Publish(await.Context(t), bookSubject("default", "x", 0), appendEntry(nil, &e)); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, "a")
}

func TestABookThatIsDeletedOrPurgedIsSaidToBeGone(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	r := readAlong(t, b)
	first := open(t, b, "x", "a")
	r.becomes(t, "a")
	deleteStream(t, b, "AGORA_BOOK")
	again := open(t, b, "x", "b")
	if again.Seq <= first.Seq {
		t.Errorf("a stream made anew begins at %d, and the one before had got to %d", again.Seq, first.Seq)
	}
	r.becomes(t, "b")
	if _, _, err := b.Book().Decide(await.Context(t), first, nil); !errors.Is(err, ErrNotOpen) {
		t.Errorf("what is gone is decided: %v", err)
	}
	stream, err := b.js.Stream(t.Context(), "AGORA_BOOK")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, "")
	open(t, b, "y", "c")
	r.becomes(t, "c")
}

func TestTheBookIsAmendedAndMadeAnewWithNobodyWatching(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	changed := testBroker(t, s, func(c *Config) { c.BookBytes = 32 << 20 })
	if c := streamConfigOf(t, changed, "AGORA_BOOK"); c.MaxBytes != 32<<20 || c.RePublish != nil || c.Discard != jetstream.DiscardNew {
		t.Errorf("the book's stream is set up as %+v", c)
	}
	deleteStream(t, b, "AGORA_BOOK")
	open(t, b, "x", "a")
}

func TestAFullBookRefusesAndStillTellsWhatStands(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.BookBytes = 1 << 20 })
	body := strings.Repeat("x", 100<<10)
	for k := range 10 {
		open(t, b, fmt.Sprint(k), body)
	}
	_, _, err := b.Book().Open(await.Context(t), Entry{Tenant: "default", Name: "more", Body: []byte(body)})
	if e := agora.AsError(err); e == nil || e.Code != agora.Unavailable || !strings.Contains(e.Message, "full") {
		t.Errorf("Open = %v, want it full", err)
	}
	if e := open(t, b, "3", body); string(e.Body) != body {
		t.Error("what stands is not told")
	}
	if _, _, err := b.Book().Open(await.Context(t), Entry{Tenant: "default", Name: "large", Body: make([]byte, 9<<20)}); agora.AsError(err).Code != agora.MessageTooLarge {
		t.Errorf("a record of 9 MiB: %v", err)
	}
}

func TestNothingIsOpenedWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	s.StopNode(0)
	await.True(t, "it is gone", func() bool { return !b.Connected() })
	ctx, cancel := context.WithTimeout(t.Context(), jslog.RetryPause*3)
	defer cancel()
	if _, _, err := b.Book().Open(ctx, Entry{Tenant: "default", Name: "x", Body: nil}); agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("Open = %v, want UNAVAILABLE", err)
	}
	if _, _, err := b.Book().Get(ctx, "default", "x"); agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("Get = %v, want UNAVAILABLE", err)
	}
}

// A writer that got no acknowledgement knows its record again.
func TestAWriterKnowsItsOwnRecordAfterALostAcknowledgement(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	e := Entry{Tenant: "default", Name: "x", Body: []byte("a"), mark: [markSize]byte{1}}
	for range 2 {
		if err := b.book.publish(await.Context(t), &e, appendEntry(nil, &e)); err != nil && !strings.Contains(err.Error(), "wrong last sequence") {
			t.Fatal(err)
		}
	}
	if got, err := b.book.read(await.Context(t), "default", "x", 0); err != nil || got.mark != e.mark {
		t.Errorf("read = %+v, %v", got, err)
	}
}

func TestTwoDecideAtOneInstantAndOneDecisionStands(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	s := testServer(t, 1)
	decideAtOnce(t, testBroker(t, s, nil), testBroker(t, s, nil), rounds)
}

// decideAtOnce has two Brokers decide the same at one instant, again and again, and holds what they are told against each other and the book.
func decideAtOnce(t *testing.T, a, b *Broker, rounds int) {
	t.Helper()
	ctx := await.Context(t)
	read := readAlong(t, b)
	var won [2]int
	var want []string
	for k := range rounds {
		e := open(t, a, fmt.Sprint(k), fmt.Sprint("open", k))
		var got [2]Entry
		var mine [2]bool
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i, at := range [...]*Broker{a, b} {
			wg.Go(func() {
				<-start
				var err error
				if got[i], mine[i], err = at.Book().Decide(ctx, e, fmt.Appendf(nil, "%d by %d", k, i)); err != nil {
					t.Errorf("round %d: %v", k, err)
				}
			})
		}
		close(start)
		wg.Wait()
		if mine[0] == mine[1] || got[0].Seq != got[1].Seq || string(got[0].Body) != string(got[1].Body) {
			t.Fatalf("round %d: %q mine %v, %q mine %v", k, got[0].Body, mine[0], got[1].Body, mine[1])
		}
		for i := range won {
			if mine[i] {
				won[i]++
			}
		}
		want = append(want, string(e.Body), string(got[0].Body))
	}
	await.True(t, "all is read", func() bool {
		read.mu.Lock()
		defer read.mu.Unlock()
		return len(read.all) >= 2*rounds
	})
	for k := range rounds {
		if _, d, err := b.Book().Get(ctx, "default", fmt.Sprint(k)); err != nil || d == nil || string(d.Body) != want[2*k+1] {
			t.Fatalf("round %d: Get = %+v, %v, want %q", k, d, err, want[2*k+1])
		}
	}
	t.Logf("won: %v", won)
}

func TestOneDecisionStandsWhileLeadersStepDown(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := testServer(t, 3)
	sure := func(c *Config) { c.Replicas = 3 }
	a, b := testBroker(t, s, sure), testBroker(t, s, sure)
	ctx, cancel := context.WithCancel(await.Context(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := s.StepDown(ctx, "AGORA_BOOK"); err != nil {
				t.Logf("no step-down: %v", err)
			}
			pause.For(ctx, 3*jslog.RetryPause)
		}
	})
	decideAtOnce(t, a, b, 100)
	cancel()
	wg.Wait()
}

func TestARecordOfTheBookThatCantBeReadIsPassedOver(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	r := readAlong(t, b)
	good := Entry{Tenant: "default", Name: "x", Body: []byte("a")}
	whole := appendEntry(nil, &good)
	for k, body := range [][]byte{nil, {2}, {1}, whole[:20], append([]byte{9}, whole[1:]...), whole} {
		if _, err := b.js.Publish(await.Context(t), fmt.Sprint(jslog.BookPrefix, "default.", k), body); err != nil {
			t.Fatal(err)
		}
	}
	open(t, b, "x", "a")
	r.becomes(t, "a")
}

func FuzzBookRecord(f *testing.F) {
	e := Entry{Tenant: "default", Name: "x", Body: []byte("a")}
	f.Add(appendEntry(nil, &e), uint64(0))
	f.Add(appendEntry(nil, &e), uint64(7))
	f.Fuzz(func(t *testing.T, body []byte, of uint64) {
		got, err := parseEntry(&jslog.Record{Subject: bookSubject("default", "x", of), Body: body, Seq: 9})
		if err == nil && (got.Tenant != "default" || got.Name != "x" || got.Decides != of) {
			t.Errorf("read as %+v", got)
		}
	})
}
