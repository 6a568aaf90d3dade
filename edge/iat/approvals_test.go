package iat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// wants is how al asks an agent for approval.
func wants(id, to string) string {
	return said{id: id, kind: "request", from: "al", to: to, payload: `{"action":"require_approval","what":"rm -r ` + id + `"}`}.String()
}

// wanted is how that comes to the agent.
func wanted(id, to string) string {
	return fmt.Sprintf(`{"header":{"msg_id":%q,"type":"request","from":"al","to":%q},"metadata":"<any>","payload":{"action":"require_approval","what":"rm -r %s"}}`, id, to, id)
}

// decision is how the decision of an operator is told to al.
func decision(id string, approved bool, by, more string) string {
	return fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"agora","to":"al","timestamp":"<any>"},"payload":{"approved":%v,"by":%q,"at":"<any>"%s}}`, id, approved, by, more)
}

// isPending waits until edges know of an approval.
func (s *site) isPending(t *testing.T, id, token string) {
	t.Helper()
	for _, k := range s.Edges() {
		await.True(t, "the approval is pending", func() bool {
			return s.ask(t, call{edge: k, path: "/a2a/approvals/" + id, token: token}).status == 200
		})
	}
}

func TestTheAddresseeDecidesByAnEnvelope(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d, k, wes := s.downlink(t, 1, "dan"), s.socket(t, 2, "kim"), s.ws(t, 0, "wes")
	s.each(t, func(t *testing.T, c *http.Client) {
		for i, approved := range []bool{true, false} {
			payload := fmt.Sprintf(`{ "approved" : %v, "note":"\u00e9", "more":1.0}`, approved)
			for to, decides := range map[string]func(id string){
				"dan": func(id string) {
					d.expect(wanted(id, "dan"))
					s.ask(t, post(2, said{id: "d" + id, kind: "response", parent: id, from: "dan", to: "al", payload: payload}.String()).over(c)).is(t, 202, "")
				},
				"kim": func(id string) {
					k.Expect(wanted(id, "kim"))
					k.Send(said{id: "d" + id, kind: "response", parent: id, from: "kim", to: "al", payload: payload}.String())
				},
				"wes": func(id string) {
					wes.Expect(fmt.Sprintf(`{"type":"message","from":"al","request_id":%q}`, id))
					wes.Send(fmt.Sprintf(`{"type":"reply","to":"al","request_id":%q,"payload":%s}`, id, payload))
				},
			} {
				id := fmt.Sprint(to, i, c.Transport.(*http.Transport).Protocols.HTTP1())
				got, events := s.start(t, post(0, wants(id, to)).over(c)), s.start(t, post(1, wants(id, to)).over(c).events())
				s.isPending(t, id, "")
				decides(id)
				a := await.Recv(t, "a decision", got)
				a.is(t, 200, fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":%q,"to":"al","timestamp":"<any>"}}`, id, to))
				if body := fieldRaw(a.body, "payload"); body != payload {
					t.Errorf("al is told %s, want %s", body, payload)
				}
				all := parsed(await.Recv(t, "events", events).body)
				if len(all) != 1 || fieldRaw(all[0].data, "payload") != payload {
					t.Errorf("al is told %+v", all)
				}
				state := map[bool]string{true: "approved", false: "denied"}[approved]
				s.ask(t, call{edge: i, path: "/a2a/approvals/" + id}).is(t, 200, fmt.Sprintf(`{"id":%q,"agent":"al","to":%q,"state":%q,"by":%q,"note":"é","payload":"<any>","decided_at":"<any>"}`, id, to, state, to))
			}
		}
	})
}

func TestOperatorsDecideOverHTTP(t *testing.T) {
	t.Parallel()
	s := patient(t)
	kim := s.socket(t, 2, "kim")
	s.each(t, func(t *testing.T, c *http.Client) {
		for i, to := range []string{"agora", "kim"} {
			id := fmt.Sprintf("op-%d-%v", i, c.Transport.(*http.Transport).Protocols.HTTP1())
			got := s.start(t, post(0, wants(id, to)).over(c))
			s.isPending(t, id, "")
			verdict := func(k int, query, body string) answer {
				return s.ask(t, call{client: c, edge: k, path: "/a2a/approvals/" + id + query, body: body})
			}
			verdict(1, "?as=al", `{"approved":true}`).refused(t, wrong{Code: agora.Forbidden})
			verdict(1, "?as=ops&agent=al", `{"approved":true,"note":" go on "}`).is(t, 200, fmt.Sprintf(`{"id":%q,"agent":"al","to":%q,"state":"approved","by":"ops","note":"go on"}`, id, to))
			await.Recv(t, "a decision", got).is(t, 200, decision(id, true, "ops", `,"note":"go on"`))
			verdict(2, "?as=ops", `{"approved":true}`).is(t, 200, `{"state":"approved"}`) // as it said before
			for _, query := range []string{"", "?as=ops", "?as=kim"} {
				a := verdict(2, query, `{"approved":false}`)
				if a.status != http.StatusConflict {
					t.Errorf("decided again: %d %s", a.status, a.body)
				}
				faulty(t, a.body, wrong{Code: agora.InvalidRequest})
			}
			s.ask(t, post(1, wants(id, to)).over(c)).is(t, 200, decision(id, true, "ops", `,"note":"go on"`))
		}
		kim.Expect(wanted(fmt.Sprintf("op-1-%v", c.Transport.(*http.Transport).Protocols.HTTP1()), "kim"))
		goesOn(kim)
	})
}

func TestWhatIsNoDecisionDecidesNothing(t *testing.T) {
	t.Parallel()
	s := patient(t)
	kim, eve := s.socket(t, 2, "kim"), s.socket(t, 1, "eve")
	got := s.start(t, post(0, wants("a", "kim")))
	kim.Expect(wanted("a", "kim"))
	s.isPending(t, "a", "")
	for i, payload := range []string{`{}`, `{"approved":"true"}`, `{"approved":null}`, `true`, `null`, `{"approved":true,"approved":false}`} {
		id := fmt.Sprint("no-", i)
		kim.Send(said{id: id, kind: "response", parent: "a", from: "kim", to: "al", payload: payload}.String())
		isRefused(t, kim, wrong{Code: agora.InvalidRequest, Parent: id})
	}
	eve.Send(said{id: "e", kind: "response", parent: "a", from: "eve", to: "al", payload: `{"approved":true}`}.String()) // who was not asked: mail like any
	s.ask(t, post(1, said{id: "s", kind: "response", parent: "a", from: "al", to: "al", payload: `{"approved":true}`}.String()))
	s.ask(t, post(1, said{id: "a", kind: "request", from: "al", to: "kim", payload: `{"action":"require_approval","what":"else"}`}.String())).refused(t, wrong{Code: agora.InvalidRequest, Parent: "a", To: "al"})
	s.ask(t, call{path: "/a2a/approvals/a"}).is(t, 200, `{"state":"pending","by":"<none>","decided_at":"<none>"}`)
	kim.Send(said{id: "y", kind: "response", parent: "a", from: "kim", to: "al", payload: `{"approved":true}`}.String())
	await.Recv(t, "a decision", got).is(t, 200, `{"payload":{"approved":true}}`)
	kim.Send(said{id: "n", kind: "response", parent: "a", from: "kim", to: "al", payload: `{"approved":false}`}.String())
	if f := string(kim.Take("a refusal, or nothing else")); !strings.Contains(f, `"error"`) {
		t.Errorf("deciding again is answered %s", f)
	}
	s.ask(t, call{path: "/a2a/approvals/a"}).is(t, 200, `{"state":"approved","by":"kim"}`)
}

const approvers = `
rules:
  - {name: all, who: {names: [al, kim, eve, many]}, agents: ["*"], send: ["*"], reply: true, directory: true}
  - {name: operators, who: {names: [ops]}, agents: ["ops"], approve: ["al"]}
`

func TestOnlyWhoMayDecidesAndSees(t *testing.T) {
	t.Parallel()
	rules, err := policy.Parse([]byte(approvers))
	if err != nil {
		t.Fatal(err)
	}
	p := new(policy.Policy)
	p.Set(rules)
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Policy: p}}})
	kim := s.socket(t, 1, "kim", "token", "t/kim/kim")
	for i, to := range []string{"kim", "agora"} {
		id := fmt.Sprint("a-", i)
		got := s.start(t, post(0, wants(id, to)).by("t/al/al"))
		s.isPending(t, id, "t/ops/ops")
		path := "/a2a/approvals/" + id
		for token, w := range map[string]struct{ see, decide int }{
			"t/al/al": {200, 403}, "t/eve/eve": {403, 403}, "t/many/al,eve": {200, 403}, "u/ops/ops": {404, 404}, "": {401, 401},
		} {
			if a := s.ask(t, call{edge: i, path: path, token: token}); a.status != w.see {
				t.Errorf("%s sees %s: %d %s, want %d", token, id, a.status, a.body, w.see)
			}
			listed := s.ask(t, call{edge: i, path: "/a2a/approvals", token: token})
			if got := strings.Contains(listed.body, `"`+id+`"`); got != (w.see == 200) {
				t.Errorf("%s is listed to %s: %v", id, token, got)
			}
			if a := s.ask(t, call{edge: i, path: path, token: token, body: `{"approved":true}`}); a.status != w.decide {
				t.Errorf("%s decides %s: %d %s, want %d", token, id, a.status, a.body, w.decide)
			}
		}
		s.ask(t, call{path: path + "?as=eve", token: "t/kim/kim", body: `{"approved":true}`}).is(t, map[string]int{"kim": 200, "agora": 403}[to], `{}`)
		if to == "agora" {
			s.ask(t, call{path: path, token: "t/ops/ops", body: `{"approved":false}`}).is(t, 200, `{"state":"denied","by":"ops"}`)
		}
		await.Recv(t, "a decision", got).is(t, 200, fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"agora","to":"al","timestamp":"<any>"}}`, id))
	}
	kim.Expect(wanted("a-0", "kim"))
}

func TestWhatNobodyDecidesInTimeIsNotApproved(t *testing.T) {
	t.Parallel()
	s := patient(t)
	kim := s.socket(t, 2, "kim")
	for i, to := range []string{"kim", "agora"} {
		id := fmt.Sprint("late-", i)
		e := said{id: id, kind: "request", from: "al", to: to, metadata: `"deadline_ms":300`, payload: `{"action":"require_approval"}`}
		s.ask(t, post(0, e.String())).is(t, 200, decision(id, false, "agora", `,"expired":true`))
		s.ask(t, call{edge: 1, path: "/a2a/approvals/" + id}).is(t, 200, `{"state":"expired","by":"agora"}`)
		a := s.ask(t, call{edge: 2, path: "/a2a/approvals/" + id, body: `{"approved":true}`})
		if a.status != http.StatusConflict {
			t.Errorf("decided too late: %d %s", a.status, a.body)
		}
	}
	kim.Expect(`{"header":{"msg_id":"late-0","type":"request","from":"al","to":"kim"}}`)
}

func TestTwoWhoDecideAtOneInstantAreOneDecision(t *testing.T) {
	t.Parallel()
	s := patient(t)
	al := s.downlink(t, 1, "al")
	for n := range rounds(twice, 20) {
		id := fmt.Sprint("two-", n)
		got := s.start(t, post(n%3, wants(id, "agora")))
		s.isPending(t, id, "")
		var verdicts []<-chan answer
		for k, by := range []string{"yes", "no"} {
			verdicts = append(verdicts, s.start(t, call{edge: k, path: "/a2a/approvals/" + id + "?as=" + by, body: fmt.Sprintf(`{"approved":%v}`, by == "yes")}))
		}
		yes, no := await.Recv(t, "yes", verdicts[0]), await.Recv(t, "no", verdicts[1])
		if yes.status+no.status != http.StatusOK+http.StatusConflict {
			t.Fatalf("round %d: %d %s, and %d %s", n, yes.status, yes.body, no.status, no.body)
		}
		approved, by := yes.status == http.StatusOK, "no"
		if approved {
			by = "yes"
		}
		await.Recv(t, "a decision", got).is(t, 200, decision(id, approved, by, ""))
		s.ask(t, post((n+1)%3, wants(id, "agora"))).is(t, 200, decision(id, approved, by, ""))
	}
	s.tells(t, "al", 1, 1)
	al.hears("al", 1, 1, false) // and nothing else: who waits is told there
}

func TestADecisionIsFoundByWhoAsksAgainAfterItsEdgeDied(t *testing.T) {
	t.Parallel()
	s := patient(t)
	got := s.start(t, post(0, wants("a", "agora")))
	s.isPending(t, "a", "")
	s.CutEdge(0)
	if a := await.Recv(t, "the end of the connection", got); a.err == nil {
		t.Fatalf("answered %d %s", a.status, a.body)
	}
	s.ask(t, call{edge: 1, path: "/a2a/approvals/a?as=ops", body: `{"approved":true}`}).is(t, 200, `{"state":"approved"}`)
	s.ask(t, post(2, wants("a", "agora"))).is(t, 200, decision("a", true, "ops", ""))
	all := parsed(s.ask(t, post(1, wants("a", "agora")).events()).body)
	if len(all) != 1 || agoratest.Frame(all[0].data).Match(decision("a", true, "ops", "")) != "" {
		t.Errorf("al is told %+v", all)
	}
}

func TestApprovalsAreListedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.socket(t, 2, "kim")
	for _, id := range []string{"1", "2"} {
		s.start(t, post(0, wants(id, "agora")))
		s.isPending(t, id, "")
	}
	s.start(t, post(0, wants("3", "kim")))
	s.isPending(t, "3", "")
	s.start(t, post(0, said{id: "1", kind: "request", from: "bo", to: "agora", payload: `{"action":"require_approval"}`}.String()))
	await.True(t, "both are there", func() bool { return s.ask(t, call{path: "/a2a/approvals/1"}).status == 400 })
	s.ask(t, call{path: "/a2a/approvals/1"}).refused(t, wrong{Code: agora.InvalidRequest})
	s.ask(t, call{path: "/a2a/approvals/1?agent=bo&as=ops", body: `{"approved":true}`}).is(t, 200, `{"id":"1","agent":"bo","state":"approved"}`)
	s.ask(t, call{path: "/a2a/approvals/1?agent=al"}).is(t, 200, `{"id":"1","agent":"al","state":"pending"}`)
	for query, want := range map[string]string{
		"": "al1 al2 al3 bo1", "?state=pending": "al1 al2 al3", "?state=approved": "bo1", "?agent=bo": "bo1", "?to=kim": "al3", "?state=pending&to=agora&agent=al": "al1 al2", "?state=denied": "",
	} {
		await.True(t, "listed: "+query+" "+want, func() bool {
			a := s.ask(t, call{edge: 1, path: "/a2a/approvals" + query})
			return strings.Join(named(a.body), " ") == want
		})
	}
}

// named returns who has asked for what in a list of approvals.
func named(list string) (all []string) {
	var said struct{ Approvals []struct{ ID, Agent string } }
	if err := json.Unmarshal([]byte(list), &said); err != nil {
		return []string{list}
	}
	for _, one := range said.Approvals {
		all = append(all, one.Agent+one.ID)
	}
	return all
}

func TestApprovalsAreWatched(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.start(t, post(0, wants("1", "agora")))
	s.isPending(t, "1", "")
	all, approved := s.listen(t, call{edge: 1, path: "/a2a/approvals"}.events()), s.listen(t, call{edge: 2, path: "/a2a/approvals?state=approved&agent=al", client: s.two}.events())
	all.expect(`{"id":"1","agent":"al","to":"agora","state":"pending","payload":{"action":"require_approval","what":"rm -r 1"},"asked_at":"<any>","expires_at":"<any>"}`)
	s.start(t, post(0, wants("2", "agora")))
	all.expect(`{"id":"2","agent":"al","state":"pending"}`)
	s.isPending(t, "2", "")
	for id, verdict := range map[string]string{"1": "true", "2": "false"} {
		s.ask(t, call{path: "/a2a/approvals/" + id + "?as=ops", body: `{"approved":` + verdict + `}`}).is(t, 200, `{}`)
		all.expect(`{"id":"` + id + `","by":"ops"}`)
	}
	approved.expect(`{"id":"1","state":"approved","by":"ops"}`)
	s.StopEdge(1)
	if e, _ := all.next(); fieldOf(e.data, "payload", "error", "code") != "UNAVAILABLE" {
		t.Errorf("got %+v, want to be sent elsewhere", e)
	}
	all.ends()
	approved.close()
	if e, ok := approved.next(); ok {
		t.Errorf("a watch of what is approved shows %+v", e)
	}
}

func TestManyMayWaitForOneDecision(t *testing.T) {
	t.Parallel()
	s := patient(t)
	kim := s.socket(t, 2, "kim")
	var got []<-chan answer
	for k := range 6 {
		got = append(got, s.start(t, post(k%3, wants("a", "kim")).over([]*http.Client{s.one, s.two}[k%2])))
	}
	kim.Expect(wanted("a", "kim"))
	kim.ExpectNone(during(50 * time.Millisecond))
	kim.Send(said{id: "y", kind: "response", parent: "a", from: "kim", to: "al", payload: `{"approved":true}`}.String())
	for _, g := range got {
		await.Recv(t, "a decision", g).is(t, 200, `{"payload":{"approved":true}}`)
	}
}
