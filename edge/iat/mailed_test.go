package iat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

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
		ctx, cancel := context.WithCancel(await.Context(t))
		got := make(chan answer, 1)
		go func() { got <- s.asks(ctx, post(0, wants(id, "agora")).over(c)) }()
		s.isPending(t, id, "")
		cancel()
		<-got
		s.ask(t, call{edge: 1, path: "/a2a/approvals/" + id + "?as=ops", body: `{"approved":true}`}).is(t, 200, `{"state":"approved"}`)
		s.ask(t, post(2, wants(id, "agora")).over(c)).is(t, 200, decision(id, true, "ops", ""))
	})
	d := s.downlink(t, 1, "al", "last_seq", "0")
	found := map[string]bool{} // in any order: each is mailed at a time of its own
	for range 2 {
		var e struct {
			Header struct {
				Of string `json:"parent_id"`
			}
		}
		if err := json.Unmarshal([]byte(d.expect(decision("<any>", true, "ops", "")).data), &e); err != nil {
			t.Fatal(err)
		}
		found[e.Header.Of] = true
	}
	if !found["gone-true"] || !found["gone-false"] {
		t.Errorf("decisions on %v are in the mail", found)
	}
	s.tells(t, "al", 1, 1)
	d.hears("al", 1, 1, false)
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
