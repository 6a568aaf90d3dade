package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// risky is what sub asks host to approve.
func risky(id string, to agora.AgentID) agora.Message {
	return agora.Message{ID: id, To: agora.Address{Agent: to}, Body: []byte(`{"action":"require_approval","what":"rm"}`), Meta: agora.Meta{Request: id}}
}

// Anyone who is asked decides by a reply like any, whatever its dialect, numbered or not, and the asker that does not
// wait is told by mail, once.
func TestTheReplyOfWhoWasAskedDecidesAnApproval(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	host, _ := registered(t, c, 1, "host")
	eve, _ := registered(t, c, 2, "eve")
	for i, reply := range []string{
		`{"type":"reply","id":"1","to":"sub","request_id":"%s","payload":{"approved":true}}`,
		`{"type":"reply","n":1,"to":"sub","payload":{"approved":true,"request_id":"%s"}}`,
		`{"type":"reply","n":2,"to":"sub","payload":{"approved":true}}`,
	} {
		id := fmt.Sprint("ask-", i)
		q, err := actor(t, c, 2).RequireApproval(await.Context(t), "sub", risky(id, "host"))
		if err != nil || q.State != approval.Pending {
			t.Fatalf("RequireApproval = %+v, %v", q, err)
		}
		host.Expect(`{"type":"message","from":"sub","request_id":"` + id + `"}`)
		eve.Send(`{"type":"reply","id":"` + id + `","to":"sub","request_id":"` + id + `","payload":{"approved":true}}`) // is mail like any
		sub.Expect(`{"type":"reply","from":"eve"}`)
		if host.Send(`{"type":"reply","id":"bad","to":"sub","request_id":"` + id + `","payload":{"yes":1}}`); i == 0 {
			host.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"bad"}`)
		} else {
			host.Expect(`{"type":"error","code":"INVALID_REQUEST"}`)
		}
		if strings.Contains(reply, "%s") {
			reply = fmt.Sprintf(reply, id)
		}
		host.Send(reply)
		host.Expect(`{"type":"receipt","status":"stored"}`)
		sub.Expect(`{"type":"reply","from":"host","request_id":"` + id + `"}`)
		again, err := actor(t, c, 0).RequireApproval(await.Context(t), "sub", risky(id, "host"))
		if err != nil || again.State != approval.Approved || again.By != "host" {
			t.Errorf("asked again: %+v, %v, want it approved by host", again, err)
		}
	}
	sub.ExpectNone(during(5 * time.Second)) // not by the edges that mail it later either
}

// A reply that names no request answers what is pending. When nothing is any more it is mail; but said again it is the
// decision that it was.
func TestAReplyThatNamesNoRequestIsMailWhenNothingIsPending(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	host, _ := registered(t, c, 1, "host")
	asks := func(id string) {
		if _, err := actor(t, c, 2).RequireApproval(await.Context(t), "sub", risky(id, "host")); err != nil {
			t.Fatal(err)
		}
		host.Await(`{"type":"message","from":"sub","request_id":"` + id + `"}`)
	}
	asks("a")
	book := c.Node(1).Config().Approvals
	if _, err := c.Node(2).Config().Approvals.Decide(await.Context(t), agora.DefaultTenant, "sub", "a", approval.Verdict{By: "joe"}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the edge of who replies knows of the decision", func() bool { return book.IsDecided(agora.DefaultTenant, approval.Box(agora.DefaultTenant, "sub", "a")) })
	host.Send(`{"type":"reply","n":1,"to":"sub","payload":"hello"}`)
	sub.ExpectAll(`{"type":"reply","from":"host","payload":"hello"}`, `{"type":"reply","from":"agora","request_id":"a"}`)
	asks("b")
	for range 2 {
		host.Send(`{"type":"reply","n":2,"to":"sub","payload":{"approved":true}}`)
		host.Await(`{"type":"receipt","n":2,"status":"stored"}`)
	}
	sub.Expect(`{"type":"reply","from":"host","request_id":"b","payload":{"approved":true}}`)
	sub.ExpectNone(during(200 * time.Millisecond))
}

// A stream decides nothing, whatever request it names or may be taken to answer: it is mail like any, once, and the
// approval stands open.
func TestAStreamedReplyOfWhoWasAskedForApprovalIsMail(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	host, _ := registered(t, c, 1, "host")
	if _, err := actor(t, c, 2).RequireApproval(await.Context(t), "sub", risky("a", "host")); err != nil {
		t.Fatal(err)
	}
	host.Expect(`{"type":"message","from":"sub","request_id":"a"}`)
	for i, request := range []string{"", `,"request_id":"a"`, ""} {
		id := fmt.Sprint("s", i)
		if i == 2 { // it is called like the request
			id = "a"
		}
		host.Send(
			fmt.Sprintf(`{"type":"reply","n":%d,"to":"sub","stream":true,"stream_id":"%s","payload":{"approved":true}%s}`, 3*i+1, id, request),
			fmt.Sprintf(`{"type":"reply_chunk","n":%d,"to":"sub","stream_id":"%s","chunk":"%d"}`, 3*i+2, id, i),
			fmt.Sprintf(`{"type":"reply_end","n":%d,"to":"sub","stream_id":"%s"}`, 3*i+3, id),
		)
		sub.ExpectAll(
			`{"type":"reply","from":"host","stream_id":"`+id+`"}`, fmt.Sprintf(`{"type":"reply_chunk","chunk":"%d"}`, i), `{"type":"reply_end"}`,
		)
		host.Await(fmt.Sprintf(`{"type":"receipt","n":%d,"status":"stored"}`, 3*i+3))
	}
	host.Send(`{"type":"reply","n":10,"to":"sub","payload":{"approved":true}}`)
	host.Await(`{"type":"receipt","n":10,"status":"stored"}`)
	sub.Expect(`{"type":"reply","from":"host","request_id":"a","payload":{"approved":true}}`)
	if q, err := actor(t, c, 0).RequireApproval(await.Context(t), "sub", risky("a", "host")); err != nil || q.State != approval.Approved {
		t.Errorf("asked again: %+v, %v, want it approved", q, err)
	}
	sub.ExpectNone(during(200 * time.Millisecond))
}

func TestWhoWaitsForADecisionIsNotMailed(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	host, _ := registered(t, c, 1, "host")
	decided := make(chan approval.Approval, 1)
	who := actor(t, c, 2)
	go func() {
		q, err := who.AwaitApproval(await.Context(t), "sub", risky("a", "host"))
		if err != nil {
			t.Error(err)
		}
		decided <- q
	}()
	host.Expect(`{"type":"message","from":"sub"}`)
	host.Send(`{"type":"reply","to":"sub","request_id":"a","payload":{"approved":false}}`)
	if q := await.Recv(t, "a decision", decided); q.State != approval.Denied || string(q.Answer) != `{"approved":false}` {
		t.Errorf("decided: %+v", q)
	}
	sub.ExpectNone(during(5 * time.Second))
}

// The edge that has decided dies before it can mail that: others do.
func TestADecisionIsMailedThoughItsEdgeDies(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	if _, err := actor(t, c, 0).RequireApproval(await.Context(t), "sub", risky("a", agora.Cluster)); err != nil {
		t.Fatal(err)
	}
	dying := c.Node(2).Config().Approvals
	c.HoldPresence(2, true) // the mail needs presence, the decision does not
	if _, err := dying.Decide(await.Context(t), agora.DefaultTenant, "sub", "a", approval.Verdict{Approved: true, By: "joe"}); err != nil {
		t.Fatal(err)
	}
	c.CutEdge(2)
	c.HoldPresence(2, false)
	if f := sub.Expect(`{"type":"reply","from":"agora","request_id":"a"}`); !strings.HasPrefix(f.Raw("payload"), `{"approved":true,"by":"joe","at":`) {
		t.Errorf("sub hears %s", f)
	}
	sub.ExpectNone(during(5 * time.Second))
}

func TestWhatNobodyDecidesInTimeIsNotApproved(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Approvals: true})
	sub, _ := registered(t, c, 0, "sub")
	host, _ := registered(t, c, 1, "host")
	m := risky("a", "host")
	m.Meta.Deadline = c.Node(0).Config().Broker.Now().Add(time.Second)
	if _, err := actor(t, c, 2).RequireApproval(await.Context(t), "sub", m); err != nil {
		t.Fatal(err)
	}
	host.Expect(`{"type":"message","from":"sub"}`)
	if f := sub.Expect(`{"type":"reply","from":"agora","request_id":"a"}`); !strings.HasSuffix(f.Raw("payload"), `"expired":true}`) {
		t.Errorf("sub hears %s", f)
	}
	host.Send(`{"type":"reply","id":"late","to":"sub","request_id":"a","payload":{"approved":true}}`)
	host.Expect(`{"type":"error","code":"INVALID_REQUEST","request_id":"late"}`)
	if _, err := actor(t, c, 0).RequireApproval(await.Context(t), "sub", risky("b", "nobody")); code(err) != agora.AgentNotFound {
		t.Errorf("asking an agent that nobody knows: %v", err)
	}
}
