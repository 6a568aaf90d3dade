package iat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhoAsksForApprovalByASocketIsToldThereOnce(t *testing.T) {
	t.Parallel()
	s := patient(t)
	al, kim := s.socket(t, 0, "al"), s.socket(t, 1, "kim")
	al.Send(wants("1", "kim"), wants("2", "agora"))
	kim.Expect(wanted("1", "kim"))
	kim.Send(said{id: "y", kind: "response", parent: "1", from: "kim", to: "al", payload: `{"approved":true, "n":1.0}`}.String())
	f := al.Expect(`{"header":{"msg_id":"<any>","parent_id":"1","type":"response","from":"kim","to":"al","timestamp":"<any>"}}`)
	if got := f.Raw("payload"); got != `{"approved":true, "n":1.0}` {
		t.Errorf("al is told %s", got)
	}
	s.isPending(t, "2", "")
	s.ask(t, call{edge: 2, path: "/a2a/approvals/2?as=ops", body: `{"approved":false,"note":"no"}`}).is(t, 200, `{"state":"denied"}`)
	al.Expect(decision("2", false, "ops", `,"note":"no"`))
	al.ExpectNone(during(100 * time.Millisecond))
	al.Send(wants("2", "agora")) // once more: it stands
	al.Expect(decision("2", false, "ops", `,"note":"no"`))
	al.Send(said{id: "3", kind: "request", from: "al", to: "agora", metadata: `"deadline_ms":200`, payload: `{"action":"require_approval"}`}.String())
	al.Expect(decision("3", false, "agora", `,"expired":true`))
	goesOn(al)
}

func TestWhoHasGoneFindsADecisionInItsMailOnce(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.downlink(t, 2, "al").close()
	s.each(t, func(t *testing.T, c *http.Client) {
		id := fmt.Sprint("gone-", c.Transport.(*http.Transport).Protocols.HTTP1())
		s.leaves(t, id, c)
		s.ask(t, call{edge: 1, path: "/a2a/approvals/" + id + "?as=ops", body: `{"approved":true}`}).is(t, 200, `{"state":"approved"}`)
		s.ask(t, post(2, wants(id, "agora")).over(c)).is(t, 200, decision(id, true, "ops", ""))
	})
	s.hasMailed(t, "gone-true", "gone-false")
}

func TestAReplyThatNamesNothingDecidesTheOnlyApprovalThatIsPending(t *testing.T) {
	t.Parallel()
	s := patient(t)
	al := s.socket(t, 0, "al")
	wes := s.ws(t, 1, "wes")
	al.Send(wants("1", "wes"))
	wes.Expect(`{"type":"message","from":"al","request_id":"1"}`)
	wes.Send(`{"type":"reply","to":"al","payload":{"approved":true}}`)
	al.Expect(`{"payload":{"approved":true}}`)
	s.ask(t, call{path: "/a2a/approvals/1"}).is(t, 200, `{"state":"approved","by":"wes"}`)
}

func TestADecisionIsMailedThoughTheEdgeThatDecidedBelievedThatItsAskerWaits(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.downlink(t, 2, "al").close()
	s.each(t, func(t *testing.T, c *http.Client) {
		id := fmt.Sprint("left-", c.Transport.(*http.Transport).Protocols.HTTP1())
		s.leaves(t, id, c)
		waits, err := s.Broker(1).Answer(waiter(id), func(context.Context, []byte) []byte { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer waits()
		s.ask(t, call{edge: 1, path: "/a2a/approvals/" + id + "?as=ops", body: `{"approved":true}`}).is(t, 200, `{"state":"approved"}`)
	})
	s.hasMailed(t, "left-true", "left-false")
}

// waiter is the name under which an edge says that al waits there for the decision of an approval.
func waiter(id string) string { return "approval." + approval.Box(agora.DefaultTenant, "al", id) }

// leaves has al ask for an approval by HTTP, and its connection end, which its edge has noticed at the end.
func (s *site) leaves(t *testing.T, id string, c *http.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(await.Context(t))
	got := make(chan answer, 1)
	go func() { got <- s.asks(ctx, post(0, wants(id, "agora")).over(c)) }()
	s.isPending(t, id, "")
	cancel()
	<-got
	await.True(t, "al's edge has noticed that al has gone", func() bool {
		_, err := s.Broker(1).Ask(await.Context(t), waiter(id), nil)
		return errors.Is(err, broker.ErrNoEdge)
	})
}

// hasMailed has al find decisions in its mail: each once, in any order.
func (s *site) hasMailed(t *testing.T, ids ...string) {
	t.Helper()
	d, found := s.downlink(t, 1, "al", "last_seq", "0"), map[string]bool{}
	for range ids {
		found[fieldOf(d.expect(decision("<any>", true, "ops", "")).data, "header", "parent_id")] = true
	}
	for _, id := range ids {
		if !found[id] {
			t.Errorf("decisions on %v are in the mail, want one on %s", found, id)
		}
	}
	s.tells(t, "al", 1, 1)
	d.hears("al", 1, 1, false)
}
