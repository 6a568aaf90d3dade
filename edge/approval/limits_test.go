package approval

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/await"
)

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
	if n := len(a.replica.tenants); a.replica.tenants[tenant] != nil {
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

// What is asked at one time counts once: not as what is asked and as what is pending as well.
func TestAsManyAsMayBePendingAreAskedAtOneTime(t *testing.T) {
	t.Parallel()
	const many = 64
	_, brokers := cluster(t, 1)
	a := edge(t, brokers[0], func(c *Config) { c.Each, c.Pending = many, 2*many })
	tenant := "default"
	failed := make(chan error, 2*many)
	var asking sync.WaitGroup
	for k := range many {
		for range 2 {
			asking.Go(func() {
				_, err := a.Ask(await.Context(t), request(tenant, fmt.Sprint(k)))
				failed <- err
			})
		}
	}
	asking.Wait()
	for range 2 * many {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.Ask(await.Context(t), request(tenant, "more"))
	wantCode(t, "one more", err, agora.RateLimited)
	if a.replica.used.asking != 0 || len(a.replica.reservations.byBox) != 0 {
		t.Errorf("%d are asked still, of %d", a.replica.used.asking, len(a.replica.reservations.byBox))
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
		await.True(t, "it is read", func() bool { upTo, _ := e.replica.progress(); return upTo >= last })
		r := e.replica
		r.forget(last + 1)
		if c := e.Counts(); c != (Counts{}) || len(r.tenants) != 0 || r.used != (usage{}) || len(r.deadlines.heap) != 0 || len(r.all) != 0 {
			t.Errorf("left: %+v, %d tenants, %d bytes, %d due, %d in all", c, len(r.tenants), r.used.bytes, len(r.deadlines.heap), len(r.all))
		}
	}
}

func FuzzRecords(f *testing.F) {
	q := request("default", "1")
	f.Add(appendRequest(nil, &q, time.Minute))
	f.Add(appendVerdict(nil, saysApproved, &Verdict{By: "joe", Note: "x", Answer: []byte("{}")}, true))
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
