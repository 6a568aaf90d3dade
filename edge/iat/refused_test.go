package iat_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// again wants a refusal to say when to try again.
func (a answer) again(t *testing.T) {
	t.Helper()
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || after < 1 || !strings.Contains(a.body, `"retry_after_ms":`) {
		t.Errorf("Retry-After is %q, and the body %s", a.header.Get("Retry-After"), a.body)
	}
}

func TestWhoSaysTooMuchIsToldWhenToGoOn(t *testing.T) {
	t.Parallel()
	limits := admission.Limits{Rate: 0.01, Burst: 200} // two at once, and then one in so long
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Limits: limits}}})
	k := s.socket(t, 0, "kim")
	s.each(t, func(t *testing.T, c *http.Client) {
		from := "al-" + c.Transport.(*http.Transport).Protocols.String()
		says := func(n int) answer {
			return s.ask(t, post(0, said{id: fmt.Sprint(n), kind: "notification", from: from, to: "kim"}.String()).over(c))
		}
		says(0).is(t, 202, "")
		says(1).is(t, 202, "")
		for n, e := range []said{
			{kind: "notification"}, {kind: "request"}, {kind: "response", parent: "x"}, {kind: "request", payload: `{"action":"require_approval"}`},
		} {
			e.id, e.from, e.to = fmt.Sprint("more-", n), from, "kim"
			a := s.ask(t, post(0, e.String()).over(c))
			a.refused(t, wrong{Code: agora.RateLimited, Parent: e.id, To: from})
			a.again(t)
		}
		k.Expect(`{"header":{"msg_id":"0","type":"notification","from":"`+from+`","to":"kim"}}`, `{"header":{"msg_id":"1","type":"notification","from":"`+from+`","to":"kim"}}`)
	})
	al := s.socket(t, 0, "al")
	for n := range 3 {
		al.Send(said{id: fmt.Sprint(n), kind: "notification", from: "al", to: "kim"}.String())
	}
	f := string(al.Take("a refusal"))
	faulty(t, f, wrong{Code: agora.RateLimited, Parent: "2", To: "al"})
	if !strings.Contains(f, `"retry_after_ms":`) {
		t.Errorf("al is not told when to go on: %s", f)
	}
}

func TestTooManyApprovalsOfOneAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	pending := func() int { return len(named(s.ask(t, call{path: "/a2a/approvals"}).body)) }
	for n := range 256 { // all at one time
		s.start(t, post(0, wants(fmt.Sprint("a-", n), "agora")).over(s.two))
	}
	await.True(t, "all are pending", func() bool { return pending() == 256 })
	a := s.ask(t, post(0, wants("one more", "agora")))
	a.refused(t, wrong{Code: agora.RateLimited, Parent: "one more", To: "al"})
	a.again(t)
	again := s.start(t, post(0, wants("a-7", "agora"))) // which stands
	s.ask(t, call{path: "/a2a/approvals/a-7?as=ops", body: `{"approved":true}`}).is(t, 200, `{}`)
	await.Recv(t, "a decision", again).is(t, 200, decision("a-7", true, "ops", ""))
}

func TestWhatIsNewIsRefusedWhileTheLogIsAwayAndDownlinksStay(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Patience: 50 * time.Millisecond}}})
	d, k := s.downlink(t, 0, "eve"), s.socket(t, 0, "kim")
	for name, cut := range map[string]func(int){"log": s.CutLog, "presence": s.CutPresence} {
		cut(0)
		t.Run(name, func(t *testing.T) { s.refusesWhatIsNew(t, name, k) })
		s.MendEdge(0)
		id := "back-" + name
		await.True(t, "it goes on", func() bool {
			return s.ask(t, post(0, said{id: id, kind: "notification", from: "al", to: "eve"}.String())).status == 202
		})
		d.expect(`{"header":{"msg_id":"` + id + `","type":"notification","from":"al","to":"eve"}}`)
		goesOn(k)
	}
}

// refusesWhatIsNew wants edge 0, which is cut off from something, to refuse what is new, and the socket to stay.
func (s *site) refusesWhatIsNew(t *testing.T, what string, k *agoratest.Client) {
	t.Helper()
	n := 0
	says := func(e said) answer {
		n++
		e.id, e.from = fmt.Sprint(what, "-", n), "al"
		return s.ask(t, post(0, e.String()).over([]*http.Client{s.one, s.two}[n%2]))
	}
	await.True(t, "the edge knows", func() bool { // until then it may be tried for as long as that takes
		return says(said{kind: "notification", to: fmt.Sprint("new-", n)}).status == http.StatusServiceUnavailable
	})
	for _, e := range []said{
		{kind: "request", to: "kim"}, {kind: "request", to: "kim", payload: `{"action":"execute","query":"x"}`},
		{kind: "request", to: "agora", payload: `{"action":"register"}`}, {kind: "request", to: "agora", payload: `{"action":"require_approval"}`},
	} {
		if what == "presence" && strings.Contains(e.payload, "approval") {
			continue // what any operator may decide needs the log alone
		}
		a := says(e)
		a.refused(t, wrong{Code: agora.Unavailable, Parent: fmt.Sprint(what, "-", n), To: "al"})
		a.again(t)
	}
	_, a := s.tryListen(t, call{path: downlinkOf("new")})
	if a == nil {
		t.Fatal("a downlink begins")
	}
	a.refused(t, wrong{Code: agora.Unavailable})
	a.again(t)
	if k.Gone() != nil {
		t.Errorf("the socket is gone: %v", k.Gone())
	}
}

func TestAFrameThatIsNoEnvelopeLeavesTheSocketOpen(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	k := s.socket(t, 0, "kim")
	k.SendBinary([]byte(said{id: "1", kind: "notification", from: "kim", to: "kim"}.String()))
	isRefused(t, k, wrong{Code: agora.InvalidRequest})
	k.SendBinary(nil)
	isRefused(t, k, wrong{Code: agora.InvalidRequest})
	k.Send(said{id: "1", kind: "notification", from: "kim", to: "kim", payload: `"` + strings.Repeat("x", 1<<20) + `"`}.String())
	isRefused(t, k, wrong{Code: agora.MessageTooLarge})
	k.Send(strings.Repeat(" ", 5<<20))
	isRefused(t, k, wrong{Code: agora.MessageTooLarge})
	k.Send("")
	isRefused(t, k, wrong{Code: agora.InvalidRequest})
	k.Send(said{id: "2", kind: "notification", from: "kim", to: "kim", payload: `"` + strings.Repeat("x", 1<<19) + `"`}.String())
	k.Expect(`{"header":{"msg_id":"2","type":"notification","from":"kim","to":"kim"}}`)
	goesOn(k)
}

func TestASocketWithTooManyErrorsIsClosed(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: iat.Config{MaxErrors: 3}})
	k := s.socket(t, 0, "kim")
	for range 4 {
		_ = k.Try("{") // the last may find the socket closed
	}
	for range 4 {
		faulty(t, string(k.Take("an error")), wrong{Code: agora.InvalidRequest})
	}
	k.ExpectClosed(1008)
}

func TestABodyThatIsTooLargeIsRefusedHoweverItComes(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	s.each(t, func(t *testing.T, c *http.Client) {
		for _, size := range []int{1<<20 + 1, 3 << 20} {
			r, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, s.HTTP(0)+"/a2a", struct{ *strings.Reader }{strings.NewReader(strings.Repeat(" ", size))}) // of no known length
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%d bytes: status %d", size, resp.StatusCode)
			}
		}
	})
}

func TestAnEnvelopeIsBoundedByWhatAFrameMayHaveHoweverItComes(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: iat.Config{Frame: 4 << 10}, web: web.Config{Body: 1 << 10}})
	k := s.socket(t, 0, "kim")
	if got := fieldOf(s.ask(t, call{path: "/a2a/manifest"}).body, "limits", "envelope_bytes"); got != "4096" {
		t.Errorf("the manifest says that an envelope has %s bytes at most", got)
	}
	of := func(id string, size int) string {
		e := said{id: id, kind: "notification", from: "kim", to: "kim", payload: `""`}
		e.payload = `"` + strings.Repeat("x", size-len(e.String())) + `"`
		return e.String()
	}
	s.each(t, func(t *testing.T, c *http.Client) {
		s.ask(t, post(0, of("1"+t.Name(), 4<<10)).over(c)).is(t, 202, "")
		k.Expect(`{"header":{"msg_id":"1` + t.Name() + `","type":"notification","from":"kim","to":"kim"}}`)
		s.ask(t, post(0, of("2", 4<<10+1)).over(c)).refused(t, wrong{Code: agora.MessageTooLarge})
	})
	k.Send(of("3", 4<<10), of("4", 4<<10+1))
	k.ExpectAll(`{"header":{"msg_id":"3","type":"notification","from":"kim","to":"kim"}}`, `{"payload":{"error":{"code":"MESSAGE_TOO_LARGE","message":"<any>"}}}`)
}

func TestADoorCountsWhatItDoes(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	d, k := s.downlink(t, 0, "eve"), s.socket(t, 0, "kim")
	st := s.stats(0)
	await.True(t, "both are counted", func() bool { return st.Downlinks.Load() == 2 })
	s.ask(t, post(0, said{id: "1", kind: "notification", from: "al", to: "nobody"}.String())).refused(t, wrong{Code: agora.AgentNotFound, Parent: "1", To: "al"})
	s.ask(t, post(0, said{id: "2", kind: "notification", from: "al", to: "eve"}.String())).is(t, 202, "")
	k.Send(`{`, said{id: "3", kind: "chunk", parent: "p", from: "kim", to: "eve", payload: `{"text":"x"}`}.String())
	d.expect(`{}`, `{}`)
	k.Take("an error")
	if posts, chunks, unknown, bad := st.Posts.Load(), st.Chunks.Load(), st.Errors[agora.AgentNotFound].Load(), st.Errors[agora.InvalidRequest].Load(); posts != 2 || chunks != 1 || unknown != 1 || bad != 1 {
		t.Errorf("%d posts, %d chunks, %d unknown agents, %d bad requests, want 2, 1, 1, 1", posts, chunks, unknown, bad)
	}
	d.close()
	k.Close(1000)
	await.True(t, "none is left", func() bool { return st.Downlinks.Load() == 0 })
}
