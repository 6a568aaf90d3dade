package iat_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// What may be said as whom by POST, vectors say: see testdata/guarded.

func TestWhoIsBoundToASocketIsThatWhateverItWrites(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.socket(t, 1, "bob", "token", "t/bob/bob")
	for token, bound := range map[string]string{"t/any": "anna", "t/sole/sole": "sole", "t/crew/carl,crew*": "crew-1"} {
		c := s.socket(t, 0, bound, "token", token)
		for i, from := range []string{`"from":"carl",`, `"from":"bob",`, ``} {
			c.Send(fmt.Sprintf(`{"header":{"msg_id":"%d","type":"notification",%s"to":"bob"}}`, i, from))
			bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"%d","type":"notification","from":%q,"to":"bob"}}`, i, bound))
		}
		c.Send(said{id: "r", kind: "request", from: "carl", to: "agora", payload: `{"action":"register","agent":"carl"}`}.String())
		isRefused(t, c, wrong{Code: agora.InvalidRequest, Path: "/payload/agent", Parent: "r"})
	}
}

func TestWhoMayBeOneAgentAloneIsThatAtADownlink(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 1}})
	s.each(t, func(t *testing.T, c *http.Client) {
		d := s.listen(t, call{client: c, path: "/a2a/events?agent=carl", token: "t/sole/sole"})
		s.ask(t, post(0, said{id: "1", kind: "notification", from: "anna", to: "sole"}.String()).by("t/any")).is(t, 202, "")
		d.expect(`{"header":{"msg_id":"1","type":"notification","from":"anna","to":"sole"}}`)
		d.close()
		s.listen(t, call{client: c, path: "/a2a/events", token: "t/sole/sole"}).close()
	})
}

func TestASocketIsRefusedBeforeItIsOne(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 1}})
	for query, w := range map[string]wrong{
		queryOf("al"):                                    {Code: agora.Unauthorized},
		queryOf("al", "token", "x"):                      {Code: agora.Unauthorized},
		queryOf("al", "token", "t/crew/b*,c*"):           {Code: agora.Forbidden},
		queryOf("agora", "token", "t/any"):               {Code: agora.InvalidRequest},
		queryOf("", "token", "t/any"):                    {Code: agora.InvalidRequest},
		queryOf("al", "token", "t/any", "last_seq", "x"): {Code: agora.InvalidRequest},
		queryOf("al", "token", "t/any", "receipts", "x"): {Code: agora.InvalidRequest},
	} {
		_, resp, err := agoratest.TryConnect(t, agoratest.Direct{}, s.socketURL(0), query, nil)
		if err == nil || resp == nil {
			t.Fatalf("%s: connected, or no answer: %v", query, err)
		}
		if want := w.Code.Status().HTTP; resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", query, resp.StatusCode, want)
		}
		b := make([]byte, 1<<10)
		n, _ := resp.Body.Read(b)
		faulty(t, string(b[:n]), w)
	}
}

func TestAnIDThatIsHeldIsRefusedAtASocketWithItsCloseCode(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	first := s.socket(t, 0, "al")
	c := s.socket(t, 1, "al")
	faulty(t, string(c.Take("an error")), wrong{Code: agora.AgentExists})
	c.ExpectClosed(4009)
	goesOn(first)
}

// neighbours are two tenants: u, where bob was asked by ann, and waits to hear about an approval, and t, from which
// mallory tries to get across.
type neighbours struct {
	*testing.T
	*site
	bob      *agoratest.Client // of tenant u, as the next ones
	question <-chan answer     // of ann's to bob, which is open
	approval <-chan answer     // the same
	mallory  string            // token of tenant t
}

func settle(t *testing.T) *neighbours {
	s, _ := guarded(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Patience: 50 * time.Millisecond}}})
	n := &neighbours{T: t, site: s, mallory: "t/mallory"}
	n.bob = s.socket(t, 1, "bob", "token", "u/bob/bob")
	n.bob.Send(said{id: "r", kind: "request", from: "bob", to: "agora", payload: `{"action":"register","tools":[{"name":"dig"}],"workspace_root":"/b"}`}.String())
	n.bob.Expect(`{"payload":{"status":"registered","agent":"bob","tools":1}}`)
	n.question = s.start(t, post(0, said{id: "q", kind: "request", from: "ann", to: "bob"}.String()).by("u/ann/ann"))
	n.bob.Expect(`{"header":{"msg_id":"q","type":"request","from":"ann","to":"bob"}}`)
	n.approval = s.start(t, post(0, said{id: "a", kind: "request", from: "ann", to: "bob", payload: `{"action":"require_approval"}`}.String()).by("u/ann/ann"))
	n.bob.Expect(`{"header":{"msg_id":"a","type":"request","from":"ann","to":"bob"}}`)
	return n
}

// tries has mallory make a request, and wants an answer that tells nothing of tenant u, of which nobody hears.
func (n *neighbours) tries(c call, status int) {
	n.Helper()
	a := n.ask(n.T, c.by(n.mallory))
	if a.status != status {
		n.Errorf("%s %s is answered %d %s, want %d", c.path, c.body, a.status, a.body, status)
	}
	goesOn(n.bob)
}

func TestNothingCrossesFromOneTenantToAnother(t *testing.T) {
	t.Parallel()
	n := settle(t)
	n.tries(post(0, said{id: "1", kind: "notification", from: "mallory", to: "bob"}.String()), 404)
	n.tries(post(0, said{id: "2", kind: "request", from: "mallory", to: "bob"}.String()), 404)
	n.tries(post(0, said{id: "3", kind: "request", from: "mallory", to: "bob"}.String()).events(), 404)
	n.tries(post(0, said{id: "4", kind: "request", from: "mallory", to: "bob", payload: `{"action":"call_tool","tool_name":"dig"}`}.String()), 404)
	n.tries(post(0, said{id: "5", kind: "request", from: "mallory", to: "bob", payload: `{"action":"execute","query":"x"}`}.String()), 404)
	n.tries(post(0, said{id: "6", kind: "request", from: "mallory", to: "bob", payload: `{"action":"require_approval"}`}.String()), 404)
	n.tries(post(0, said{id: "7", kind: "response", parent: "q", from: "bob", to: "ann"}.String()), 404)
	n.tries(post(0, said{id: "8", kind: "notification", parent: "q", from: "ann", to: "bob", payload: `{"action":"cancel"}`}.String()), 404)
	n.tries(call{path: "/a2a/manifest?agent=bob"}, 404)
	n.tries(call{path: "/agents/bob/tools/dig", body: `{}`}, 404)
	for _, path := range []string{"/a2a/approvals/a", "/a2a/approvals/a?agent=ann"} {
		n.tries(call{path: path}, 404)
		n.tries(call{path: path, body: `{"approved":true}`}, 404)
	}
	n.ask(t, call{path: "/a2a/tools", token: n.mallory}).is(t, 200, `{"tools":[],"more":false}`)
	n.ask(t, call{path: "/a2a/approvals", token: n.mallory}).is(t, 200, `{"approvals":[],"more":false}`)
	n.impersonates(t)
	n.bob.Send(said{id: "qa", kind: "response", parent: "q", from: "bob", to: "ann", payload: `"yes"`}.String(),
		said{id: "aa", kind: "response", parent: "a", from: "bob", to: "ann", payload: `{"approved":true}`}.String())
	await.Recv(t, "an answer", n.question).is(t, 200, `{"payload":"yes"}`)
	await.Recv(t, "a decision", n.approval).is(t, 200, `{"payload":{"approved":true}}`)
}

// impersonates has agents of the same ids be there in mallory's tenant, where they are others.
func (n *neighbours) impersonates(t *testing.T) {
	watch := n.listen(t, call{path: "/a2a/approvals", token: n.mallory}.events())
	ann := n.socket(t, 0, "ann", "token", n.mallory, "last_seq", "0")
	bob := n.listen(t, call{edge: 1, path: downlinkOf("bob", "last_seq", "0"), token: n.mallory})
	for i, e := range []said{
		{kind: "response", parent: "q", from: "bob", to: "ann", payload: `"forged"`}, {kind: "chunk", parent: "q", from: "bob", to: "ann", payload: `{"text":"forged"}`},
		{kind: "response", parent: "a", from: "bob", to: "ann", payload: `{"approved":false}`},
	} {
		e.id = fmt.Sprint("i", i)
		n.tries(post(0, e.String()), 202)
		ann.Expect(fmt.Sprintf(`{"header":{"msg_id":%q,"parent_id":%q,"type":%q,"from":"bob","to":"ann"}}`, e.id, e.parent, e.kind))
	}
	ann.Send(said{id: "c", kind: "notification", parent: "q", from: "ann", to: "bob", payload: `{"action":"cancel"}`}.String())
	ann.Send(said{id: "k", kind: "notification", from: "ann", to: "agora", payload: `{"action":"ack","seq":9007199254740000}`}.String())
	isRefused(t, ann, wrong{Code: agora.InvalidRequest, Parent: "k"})
	bob.expect(`{"header":{"msg_id":"c","parent_id":"q","type":"notification","from":"ann","to":"bob"}}`)
	ann.ExpectNone(during(50 * time.Millisecond))
	for _, q := range []<-chan answer{n.question, n.approval} {
		select {
		case a := <-q:
			t.Errorf("what is asked in tenant u is answered %d %s", a.status, a.body)
		default:
		}
	}
	bob.close()
	watch.close()
	if e, ok := watch.next(); ok {
		t.Errorf("mallory watches %+v", e)
	}
}

func TestAResumeTokenOfAnotherTenantIsNone(t *testing.T) {
	t.Parallel()
	n := settle(t)
	d := n.listen(t, call{path: downlinkOf("dan"), token: "u/dan/dan"})
	token := d.resp.Header.Get("Agora-Resume-Token")
	_, a := n.tryListen(t, call{path: downlinkOf("dan", "resume_token", token), token: n.mallory})
	if a == nil { // another dan, for whom it means nothing
		goesOn(n.bob)
		n.ask(t, post(0, said{id: "1", kind: "notification", from: "ann", to: "dan"}.String()).by("u/ann/ann")).is(t, 202, "")
		d.expect(`{"header":{"msg_id":"1","type":"notification","from":"ann","to":"dan"}}`)
		return
	}
	a.refused(t, wrong{Code: agora.InvalidRequest})
}
