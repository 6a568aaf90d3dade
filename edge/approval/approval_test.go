package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestAnApprovalIsAskedOnceAndDecidedOnceWhateverTheEdge(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	q := request(tenant, "1")
	d := ask(t, a, q)
	if d.State != Pending || string(d.Request) != string(q.Request) || string(d.Head) != "head" || d.Trace != "trace" || !d.Expires.Equal(d.Asked.Add(10*time.Minute)) {
		t.Errorf("asked: %+v", d)
	}
	if again := ask(t, b, q); !reflect.DeepEqual(again, d) {
		t.Errorf("asked again elsewhere: %+v, want %+v", again, d)
	}
	other := q
	other.Request = json.RawMessage(`{"action":"require_approval","n":1e2}`)
	_, err := b.Ask(await.Context(t), other)
	wantCode(t, "another request of that id", err, agora.InvalidRequest)
	other = q
	other.To = "ops"
	_, err = a.Ask(await.Context(t), other)
	wantCode(t, "the request of another", err, agora.InvalidRequest)

	yes, err := decide(t, b, tenant, "1", true, "host")
	if err != nil || yes.State != Approved || yes.By != "host" || yes.Note != "so be it" || yes.Decided.Before(yes.Asked) {
		t.Fatalf("Decide = %+v, %v", yes, err)
	}
	if again, err := decide(t, a, tenant, "1", true, "host"); err != nil || !reflect.DeepEqual(again, yes) {
		t.Errorf("decided again: %+v, %v", again, err)
	}
	for _, c := range []struct {
		approved bool
		by       string
	}{{false, "host"}, {true, "joe"}} {
		_, err := decide(t, a, tenant, "1", c.approved, c.by)
		wantCode(t, "another decision", err, agora.InvalidRequest)
		stands, ok := errors.AsType[*DecidedError](err)
		if !ok || !errors.Is(err, ErrDecided) || !reflect.DeepEqual(stands.Stands, yes) {
			t.Errorf("another decision: %v, want one that has what stands", err)
		}
	}
	for _, e := range []*Approvals{a, b} {
		if got, err := e.Get(await.Context(t), tenant, "sub", "1"); err != nil || !reflect.DeepEqual(got, yes) {
			t.Errorf("Get = %+v, %v", got, err)
		}
	}
	if again := ask(t, a, q); !reflect.DeepEqual(again, yes) {
		t.Errorf("asked again when it is decided: %+v", again)
	}
}

func TestTwoDecideAtOneInstantAndBothSeeTheSame(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	a, b, tenant := pair(t, func(c *Config) { c.Each = rounds })
	decideAtOnce(t, a, b, tenant, rounds)
}

func decideAtOnce(t *testing.T, a, b *Approvals, tenant string, rounds int) {
	t.Helper()
	var won [2]int
	for k := range rounds {
		id := fmt.Sprint(k)
		q := request(tenant, id)
		q.Request, q.Head = nil, nil
		ask(t, a, q)
		var got [2]Approval
		var errs [2]error
		var awaited Approval
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i, e := range [...]*Approvals{a, b} {
			wg.Go(func() {
				<-start
				got[i], errs[i] = e.Decide(await.Context(t), tenant, "sub", id, Verdict{Approved: i == 0, By: fmt.Sprint("decider ", i)})
			})
		}
		wg.Go(func() {
			var err error
			if awaited, err = b.Await(await.Context(t), tenant, "sub", id); err != nil {
				t.Errorf("Await: %v", err)
			}
		})
		close(start)
		wg.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		lost, ok := errors.AsType[*DecidedError](errs[1-winner])
		if errs[winner] != nil || !ok || !reflect.DeepEqual(lost.Stands, got[winner]) || !reflect.DeepEqual(awaited, got[winner]) {
			t.Fatalf("round %d: %+v, %v; awaited %+v", k, got, errs, awaited)
		}
		won[winner]++
	}
	t.Logf("won: %v", won)
}

func TestApprovalsAreDecidedOnceWhileLeadersStepDown(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s, brokers := cluster(t, 3)
	a, b := edge(t, brokers[0], nil), edge(t, brokers[1], nil)
	ctx, cancel := context.WithCancel(await.Context(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(300 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if err := s.StepDown(ctx, "AGORA_BOOK"); err != nil {
				t.Logf("no step-down: %v", err)
			}
		}
	})
	decideAtOnce(t, a, b, "default", 50)
	cancel()
	wg.Wait()
}

func TestWhatNobodyDecidesExpires(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	soon := func(c *Config) { c.Expiry = 50 * time.Millisecond }
	a, b, tenant := edge(t, brokers[0], soon), edge(t, brokers[1], soon), "default"
	for k := range 20 {
		ask(t, a, request(tenant, fmt.Sprint(k)))
	}
	for k := range 20 {
		d, err := b.Await(await.Context(t), tenant, "sub", fmt.Sprint(k))
		if err != nil || d.State != Expired || d.By != "agora" || d.Decided.Before(d.Expires) {
			t.Fatalf("Await = %+v, %v", d, err)
		}
	}
	_, err := decide(t, a, tenant, "3", true, "host")
	if e, ok := errors.AsType[*DecidedError](err); !ok || e.Stands.State != Expired {
		t.Errorf("decided late: %v", err)
	}
	await.True(t, "nothing is pending", func() bool { return a.Counts().Pending == 0 && b.Counts().Pending == 0 })
	if n := a.Totals().Expired.Load() + b.Totals().Expired.Load(); n != 20 {
		t.Errorf("%d are counted, want 20", n)
	}
	if n := a.ToDecided().Read().Count + b.ToDecided().Read().Count; n != 20 {
		t.Errorf("%d durations are counted, want 20", n)
	}
}

// Which edge expires what does not matter: a decision that the log has stamped too late is one, whoever has stored it.
func TestADecisionThatComesTooLateIsAnExpiry(t *testing.T) {
	t.Parallel()
	slow, b, tenant := pair(t, nil)
	slow.Close()
	early := edge(t, shared[0], func(c *Config) { c.Now = func() time.Time { return shared[0].Now().Add(-time.Hour) } }) // its clock is an hour behind
	q := request(tenant, "1")
	q.Expires = early.cfg.Now().Add(5 * time.Millisecond)
	d := ask(t, early, q)
	await.True(t, "it is too late", func() bool { return shared[0].Now().After(d.Expires) })
	_, err := decide(t, early, tenant, "1", true, "host")
	if e, ok := errors.AsType[*DecidedError](err); !ok || e.Stands.State != Expired || e.Stands.By != "agora" {
		t.Errorf("Decide = %v", err)
	}
	if d, err := b.Get(await.Context(t), tenant, "sub", "1"); err != nil || d.State != Expired {
		t.Errorf("Get = %+v, %v", d, err)
	}
	q = request(tenant, "2")
	q.Expires = early.cfg.Now().Add(-time.Second)
	_, err = early.Ask(t.Context(), q)
	wantCode(t, "a request whose deadline has passed", err, agora.Timeout)
}

func TestWhoWaitsHearsOfADecisionAfterTheLogWasAway(t *testing.T) {
	t.Parallel()
	s, brokers := cluster(t, 1)
	a, b := edge(t, brokers[0], nil), edge(t, brokers[1], nil)
	q := request("default", "1")
	ask(t, a, q)
	got := make(chan Approval, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		d, err := a.Await(await.Context(t), "default", "sub", "1")
		if err != nil {
			t.Errorf("Await: %v", err)
		}
		got <- d
	})
	s.StopNode(0)
	await.True(t, "they are cut off", func() bool { return a.Synced() != nil && b.Synced() != nil })
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	if _, err := decide(t, b, "default", "1", true, "host"); err != nil {
		t.Fatal(err)
	}
	if d := await.Recv(t, "the decision", got); d.State != Approved {
		t.Errorf("Await = %+v", d)
	}
	wg.Wait()
	await.True(t, "they are in step again", func() bool { return a.Synced() == nil && b.Synced() == nil })
}

func TestWhoWaitsForAnApprovalThatIsLostIsTold(t *testing.T) {
	t.Parallel()
	s, brokers := cluster(t, 1)
	a := edge(t, brokers[0], nil)
	w := a.Watch("default", Filter{})
	ask(t, a, request("default", "1"))
	over := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := a.Await(await.Context(t), "default", "sub", "1")
		over <- err
	})
	if d, _, err := w.Next(await.Context(t)); err != nil || len(d) != 1 {
		t.Errorf("Next = %+v, %v", d, err)
	}
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "AGORA_BOOK"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "Await", await.Recv(t, "an end", over), agora.Unavailable)
	wg.Wait()
	if _, anew, err := w.Next(await.Context(t)); err != nil || !anew {
		t.Errorf("Next = %v, %v, want all to be listed anew", anew, err)
	}
	if d := ask(t, a, request("default", "1")); d.State != Pending {
		t.Errorf("asked again: %+v", d)
	}
	if all, _ := a.List("default", Filter{}); len(all) != 1 || a.Counts().Pending != 1 {
		t.Errorf("listed: %+v", all)
	}
}

// Anyone who finds nothing in the replica has it read what was stored a moment ago at another edge.
// What the book forgets, edges do.
