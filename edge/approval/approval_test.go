package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
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
	await.True(t, "nothing is pending", func() bool { return a.pending.Load() == 0 && b.pending.Load() == 0 })
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
	if all, _ := a.List("default", Filter{}); len(all) != 1 || a.pending.Load() != 1 {
		t.Errorf("listed: %+v", all)
	}
}

func TestApprovalsAreListedFoundAndPendingAtEveryEdge(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	if a.IsPending(tenant, "sub", "host", "1") || a.Pending(tenant, "host") != nil {
		t.Error("something is pending")
	}
	for k := range 5 {
		ask(t, a, request(tenant, fmt.Sprint(k)))
	}
	other := request(tenant, "1")
	other.Agent, other.To = "sub-2", agora.Cluster
	ask(t, b, other)
	if _, err := decide(t, b, tenant, "0", false, "joe"); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*Approvals{"a": a, "b": b, "a new edge": edge(t, shared[0], nil)} {
		await.True(t, "all is known at "+name, func() bool {
			all, _ := e.List(tenant, Filter{State: Pending})
			denied, _ := e.List(tenant, Filter{State: Denied})
			return len(all) == 5 && len(denied) == 1
		})
		all, more := e.List(tenant, Filter{Most: 3})
		if !more || len(all) != 3 || all[0].ID != "0" || all[1].ID != "1" || all[2].ID != "2" {
			t.Errorf("%s: List = %+v, %v", name, all, more)
		}
		if all, more := e.List(tenant, Filter{To: agora.Cluster}); more || len(all) != 1 || all[0].Agent != "sub-2" {
			t.Errorf("%s: List = %+v, %v", name, all, more)
		}
		if all, _ := e.List(tenant, Filter{Agent: "sub-2", To: "host"}); len(all) != 0 {
			t.Errorf("%s: List = %+v", name, all)
		}
		if !e.IsPending(tenant, "sub", "host", "1") || e.IsPending(tenant, "sub", "host", "0") || e.IsPending(tenant, "sub", "joe", "1") || e.IsPending("x", "sub", "host", "1") {
			t.Errorf("%s: what is pending is not", name)
		}
		if n := len(e.Pending(tenant, "host")); n != 4 {
			t.Errorf("%s: %d pending, want 4", name, n)
		}
	}
	if d, err := b.Find(await.Context(t), tenant, "2"); err != nil || d.ID != "2" {
		t.Errorf("Find = %+v, %v", d, err)
	}
	_, err := b.Find(await.Context(t), tenant, "1")
	wantCode(t, "Find of an id of two", err, agora.InvalidRequest)
	_, err = b.Find(await.Context(t), tenant, "7")
	wantCode(t, "Find of nothing", err, agora.NotFound)
	_, err = b.Find(await.Context(t), "acme", "2")
	wantCode(t, "Find in another tenant", err, agora.NotFound)
	_, err = b.Get(await.Context(t), tenant, "sub", strings.Repeat("7", 1000))
	wantCode(t, "Get of nothing", err, agora.NotFound)
	if len(err.Error()) > 200 {
		t.Errorf("%v is long", err)
	}
	_, err = b.Await(await.Context(t), tenant, "sub", "7")
	wantCode(t, "Await of nothing", err, agora.NotFound)
	_, err = decide(t, b, tenant, "7", true, "joe")
	wantCode(t, "Decide of nothing", err, agora.NotFound)
}

// Whoever finds nothing in the replica has it read what was stored a moment ago at another edge.
func TestWhatWasJustAskedElsewhereIsFound(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	for k := range 50 {
		id := fmt.Sprint(k)
		ask(t, a, request(tenant, id))
		if d, err := b.Find(await.Context(t), tenant, id); err != nil || d.ID != id {
			t.Fatalf("Find = %+v, %v", d, err)
		}
	}
}

func TestAWatchTellsOfEachChange(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	w, other := b.Watch(tenant, Filter{Agent: "sub"}), b.Watch(tenant, Filter{Agent: "other"})
	defer other.Close()
	next := func(want State) {
		t.Helper()
		d, anew, err := w.Next(await.Context(t))
		if err != nil || anew || len(d) != 1 || d[0].State != want {
			t.Errorf("Next = %+v, %v, %v, want one that is %s", d, anew, err, want)
		}
	}
	ask(t, a, request(tenant, "1"))
	next(Pending)
	if _, err := decide(t, a, tenant, "1", true, "host"); err != nil {
		t.Fatal(err)
	}
	next(Approved)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := other.Next(ctx)
	wantCode(t, "a watch to which nothing happens", err, agora.Unavailable)
	w.Close()
	w.Close()
	_, _, err = w.Next(t.Context())
	wantCode(t, "a closed watch", err, agora.Unavailable)
	b.Close()
	_, _, err = other.Next(t.Context())
	wantCode(t, "a watch of an edge that has closed", err, agora.Unavailable)
}

func TestASlowWatchIsToldToListAnew(t *testing.T) {
	t.Parallel()
	a, _, tenant := pair(t, nil)
	w := a.Watch(tenant, Filter{})
	defer w.Close()
	a.mu.Lock()
	for k := range mostWaiting + 1 {
		q := request(tenant, fmt.Sprint(k))
		a.note(&entry{Approval: &q})
	}
	queued := len(w.queue) + len(w.queued)
	a.mu.Unlock()
	if queued != 0 {
		t.Errorf("%d wait though all is to be listed anew", queued)
	}
	if d, anew, err := w.Next(t.Context()); err != nil || !anew || len(d) != 0 {
		t.Errorf("Next = %+v, %v, %v", d, anew, err)
	}
	ask(t, a, request(tenant, "x"))
	if d, anew, err := w.Next(await.Context(t)); err != nil || anew || len(d) != 1 {
		t.Errorf("Next = %+v, %v, %v", d, anew, err)
	}
}

func TestTheAgentThatIsAskedDecidesByItsReply(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	ask(t, a, request(tenant, "1"))
	answer := func(from agora.AgentID, body string) (Approval, error) {
		return b.Answer(await.Context(t), &agora.Message{Kind: agora.Reply, From: from, To: agora.ToBox(tenant, Box(tenant, "sub", "1"), "sub"), Body: []byte(body)})
	}
	_, err := answer("sub", `{"approved":true}`)
	wantCode(t, "the asker's own", err, agora.Forbidden)
	_, err = answer("joe", `{"approved":true}`)
	wantCode(t, "another's", err, agora.Forbidden)
	for _, bad := range []string{
		``, `null`, `true`, `[]`, `{}`, `"approved"`, `{"approved":1}`, `{"approved":"true"}`, `{"approved":null}`, `{"Approved":true}`,
		`{"approved":true,"approved":false}`, `{"approved":true`, `{"approved":true}}`, `{"approved":true} x`, `{"x":{"approved":true}}`, `{"approved":true,"note":1}`,
		`{"approved":true,"note":"a","note":"b"}`,
	} {
		_, err := answer("host", bad)
		wantCode(t, bad, err, agora.InvalidRequest)
	}
	_, err = answer("host", `{"approved":true,"x":"`+strings.Repeat("x", MaxAnswer)+`"}`)
	wantCode(t, "a long one", err, agora.MessageTooLarge)
	_, err = answer("host", `{"approved":true,"note":"`+strings.Repeat("x", MaxNote+1)+`"}`)
	wantCode(t, "a long note", err, agora.InvalidRequest)
	body := ` {"why": 1e400, "note":"fine", "approved" : true}`
	d, err := answer("host", body)
	if err != nil || d.State != Approved || d.By != "host" || d.Note != "fine" || string(d.Answer) != body {
		t.Errorf("Answer = %+v, %v", d, err)
	}
	if d, err := answer("host", body); err != nil || d.State != Approved {
		t.Errorf("the same again: %+v, %v", d, err)
	}
	if _, err := answer("host", `{"approved":false}`); !errors.Is(err, ErrDecided) {
		t.Errorf("otherwise: %v", err)
	}
	_, err = b.Answer(t.Context(), &agora.Message{From: "host", To: agora.ToBox(tenant, Box(tenant, "sub", "2"), "sub"), Body: []byte(body)})
	wantCode(t, "the answer to nothing", err, agora.NotFound)
}

func TestARequestForApprovalThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	a, _, tenant := pair(t, nil)
	for about, c := range map[string]struct {
		change func(*Approval)
		want   agora.Code
	}{
		"no id":           {func(q *Approval) { q.ID = "" }, agora.InvalidRequest},
		"a long id":       {func(q *Approval) { q.ID = strings.Repeat("x", maxID+1) }, agora.InvalidRequest},
		"nobody asks":     {func(q *Approval) { q.Agent = "" }, agora.InvalidRequest},
		"the cluster":     {func(q *Approval) { q.Agent = agora.Cluster }, agora.InvalidRequest},
		"nobody is asked": {func(q *Approval) { q.To = "" }, agora.InvalidRequest},
		"itself":          {func(q *Approval) { q.To = q.Agent }, agora.InvalidRequest},
		"large":           {func(q *Approval) { q.Request = make([]byte, MaxRequest) }, agora.MessageTooLarge},
	} {
		q := request(tenant, "1")
		c.change(&q)
		_, err := a.Ask(t.Context(), q)
		wantCode(t, about, err, c.want)
	}
	if n := len(a.tenants); a.find(tenant, "") != nil || a.tenants[tenant] != nil {
		t.Errorf("something is kept of what was refused: %d tenants", n)
	}
}

func TestWhatIsPendingAndKeptIsBounded(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	a := edge(t, brokers[0], func(c *Config) { c.Each, c.Pending = 3, 5 })
	of := func(agent agora.AgentID, id, tenant string) error {
		q := request(tenant, id)
		q.Agent = agent
		_, err := a.Ask(await.Context(t), q)
		return err
	}
	for k := range 3 {
		if err := of("one", fmt.Sprint(k), "default"); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "a fourth", of("one", "4", "default"), agora.RateLimited)
	if err := of("one", "2", "default"); err != nil {
		t.Errorf("one that stands, again: %v", err)
	}
	for k := range 2 {
		if err := of("two", fmt.Sprint(k), "acme"); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "a sixth of all", of("three", "1", "default"), agora.RateLimited)
	if _, err := a.Decide(await.Context(t), "default", "one", "0", Verdict{By: "host"}); err != nil {
		t.Fatal(err)
	}
	if err := of("one", "4", "default"); err != nil {
		t.Errorf("once one is decided: %v", err)
	}
}

func TestAnAskerFillsNoMoreThanItsShareOfTheBook(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	a := edge(t, brokers[0], nil)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		q := request("default", fmt.Sprint(n))
		q.Request = json.RawMessage(`"` + strings.Repeat("x", 200<<10) + `"`)
		if _, err = a.Ask(await.Context(t), q); err == nil {
			_, err = decide(t, a, "default", q.ID, true, "host")
		}
	}
	wantCode(t, "what is too much", err, agora.RateLimited)
	if bytes := int64(n) * (200 << 10); bytes < a.cfg.Book.Bytes()/20 || bytes > a.cfg.Book.Bytes()/15 {
		t.Errorf("refused after %d bytes", bytes)
	}
	q := request("default", "x")
	q.Agent = "another"
	ask(t, a, q)
}

// What the book forgets, edges do.
func TestWhatIsTooOldIsForgotten(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	a, b := edge(t, brokers[0], nil), edge(t, brokers[1], nil)
	for k := range 3 {
		ask(t, a, request("default", fmt.Sprint(k)))
	}
	if _, err := decide(t, a, "default", "1", true, "host"); err != nil {
		t.Fatal(err)
	}
	last, err := brokers[0].Book().Last(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Approvals{a, b} {
		await.True(t, "it is read", func() bool { e.mu.RLock(); defer e.mu.RUnlock(); return e.upTo >= last })
		e.forget(last + 1)
		if c := e.Counts(); c != (Counts{}) || len(e.tenants) != 0 || e.bytes != 0 || len(e.due) != 0 || e.pending.Load() != 0 || len(e.all) != 0 {
			t.Errorf("left: %+v, %d tenants, %d bytes, %d due, %d in all", c, len(e.tenants), e.bytes, len(e.due), len(e.all))
		}
	}
}

func TestEveryoneWhoWaitsIsLetGoWhenTheEdgeCloses(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	ask(t, a, request(tenant, "1"))
	over := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := b.Await(await.Context(t), tenant, "sub", "1")
		over <- err
	})
	await.True(t, "it waits", func() bool {
		b.mu.RLock()
		defer b.mu.RUnlock()
		n := b.find(tenant, Box(tenant, "sub", "1"))
		return n != nil && n.changed != nil
	})
	b.Close()
	wantCode(t, "Await", await.Recv(t, "an end", over), agora.Unavailable)
	wg.Wait()
}

func TestABoxHasANameOfItsOwn(t *testing.T) {
	all := map[string]bool{}
	for _, c := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "a", "bc"}, {"a", "b", "c "}} {
		box := Box(c[0], agora.AgentID(c[1]), c[2])
		if !IsBox(box) || all[box] || box != Box(c[0], agora.AgentID(c[1]), c[2]) {
			t.Errorf("the box of %q is %q", c, box)
		}
		all[box] = true
	}
	for _, name := range []string{"", "a", "n" + strings.Repeat("0", 40), "a" + strings.Repeat("0", 39), "a" + strings.Repeat("G", 40), "c" + strings.Repeat("A", 26)} {
		if IsBox(name) {
			t.Errorf("%q is taken for a box", name)
		}
	}
}

func TestNothingPendingCostsNothing(t *testing.T) {
	a := &Approvals{}
	if n := testing.AllocsPerRun(100, func() {
		if a.IsPending("default", "sub", "host", "1") || a.Pending("default", "host") != nil {
			t.Error("something is pending")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRecords(f *testing.F) {
	q := request("default", "1")
	f.Add(appendRequest(nil, &q, time.Minute))
	f.Add(appendVerdict(nil, saysApproved, &Verdict{By: "joe", Note: "x", Answer: []byte("{}")}))
	f.Add([]byte{version, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, body []byte) {
		e := broker.Entry{Tenant: "default", Name: Box("default", "sub", "1"), Body: body, Time: time.Unix(1, 0)}
		if got, err := parseRequest(&e); err == nil && (got.Agent != "sub" || got.ID != "1" || got.Expires.Before(got.Asked)) {
			t.Errorf("read as %+v", got)
		}
		open := Approval{Expires: time.Unix(math.MaxInt32, 0)}
		if d, err := open.decide(&e); err == nil && d.State == Pending {
			t.Errorf("decided as %+v", d)
		}
	})
}

func FuzzVerdict(f *testing.F) {
	f.Add([]byte(`{"approved":true,"note":"x"}`))
	f.Add([]byte(`{"approved":1e999999}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := ParseVerdict(body)
		var as map[string]any
		if err == nil && (json.Unmarshal(body, &as) != nil && !strings.Contains(string(body), "e") && !strings.Contains(string(body), "E") || as != nil && as["approved"] != v.Approved) {
			t.Errorf("%q is read as %+v", body, v)
		}
	})
}
