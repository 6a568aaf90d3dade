package iat_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// tells has al send eve notifications of some numbers, and wants each to be stored.
func (s *site) tells(t *testing.T, to string, from, upTo int) {
	t.Helper()
	for n := from; n <= upTo; n++ {
		s.ask(t, post(0, said{id: fmt.Sprint(to, "-", n), kind: "notification", from: "al", to: to, payload: fmt.Sprint(n)}.String())).is(t, 202, "")
	}
}

// hears takes those numbers from a downlink, in order and nothing between them, and returns the position of the last
// one.
func (d *downlink) hears(to string, from, upTo int, redelivered bool) (id string) {
	d.t.Helper()
	for n := from; n <= upTo; n++ {
		e := d.expect(fmt.Sprintf(`{"header":{"msg_id":"%s-%d","type":"notification","from":"al","to":%q},"payload":%d}`, to, n, to, n))
		if got := strings.Contains(e.data, `"redelivered":true`); got != redelivered {
			d.t.Errorf("%s: redelivered is %v, want %v", e.data, got, redelivered)
		}
		id = e.id
	}
	return id
}

func TestADownlinkIsResumedAtAnotherEdgeAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.each(t, func(t *testing.T, c *http.Client) {
		eve := "eve-" + c.Transport.(*http.Transport).Protocols.String()
		d := s.listen(t, call{client: c, path: downlinkOf(eve)})
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"} {
			if got := d.resp.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		s.tells(t, eve, 1, 5)
		last := d.hears(eve, 1, 3, false)
		d.close()
		s.tells(t, eve, 6, 7)
		d = s.listen(t, call{client: c, edge: 1, path: downlinkOf(eve), headers: map[string]string{"Last-Event-ID": last}})
		last = d.hears(eve, 4, 7, false) // of which it has said that it lacks them
		d.close()
		s.tells(t, eve, 8, 8)
		d = s.listen(t, call{client: c, edge: 2, path: downlinkOf(eve, "last_seq", last)})
		last = d.hears(eve, 8, 8, false)
		d.close()
		d = s.listen(t, call{client: c, path: downlinkOf(eve, "last_seq", "0"), headers: map[string]string{"Last-Event-ID": last}}) // the header wins
		s.tells(t, eve, 9, 9)
		d.hears(eve, 9, 9, false)
		d.close()
	})
}

func TestADownlinkThatDoesNotSayWhereItStoodIsToldAllThatIsNotKnownToHaveArrived(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d := s.downlink(t, 0, "eve")
	s.tells(t, "eve", 1, 3)
	d.hears("eve", 1, 3, false)
	d.close()
	d = s.downlink(t, 1, "eve")
	last := d.hears("eve", 1, 3, true)
	d.close()
	k := s.socket(t, 2, "eve", "last_seq", last)
	k.Send(said{id: "k", kind: "notification", from: "eve", to: "agora", payload: `{"action":"ack","seq":` + last + `}`}.String())
	goesOn(k)
	k.Close(1000)
	await.True(t, "the socket's session is over", func() bool { return s.Node(2).Stats().Sessions == 0 }) // before that what it was given is not known
	s.tells(t, "eve", 4, 4)
	d = s.downlink(t, 0, "eve")
	d.hears("eve", 4, 4, false)
}

func TestAMailIsDeliveredByADownlinkOfEventsAndAcknowledgedByItsReturn(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d := s.downlink(t, 0, "eve")
	for _, sender := range []struct {
		*agoratest.Client
		says, told string
	}{
		{s.ws(t, 1, "wes"), `{"type":"send","to":"eve","id":"m","receipts":["delivered","acked"]}`, `{"type":"receipt","request_id":"m","status":%q}`},
		{
			s.socket(t, 1, "al"), said{id: "m", kind: "notification", from: "al", to: "eve", metadata: `"receipts":["delivered","acked"]`}.String(),
			`{"header":{"msg_id":"<any>","parent_id":"m","type":"notification","from":"agora","to":"al","timestamp":"<any>"},"payload":{"action":"receipt","status":%q,"agent":"eve"}}`,
		},
	} {
		sender.Send(sender.says)
		e, _ := d.next()
		sender.Await(fmt.Sprintf(sender.told, "delivered"))
		d.close()
		d = s.downlink(t, 2, "eve", "last_seq", e.id)
		sender.Await(fmt.Sprintf(sender.told, "acked"))
	}
}

func TestAQuietDownlinkIsKeptAlive(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: iat.Config{KeepAlive: 10 * time.Millisecond}})
	s.each(t, func(t *testing.T, c *http.Client) {
		bob := s.socket(t, 0, "bob-"+t.Name())
		for name, d := range map[string]*downlink{
			"downlink": s.listen(t, call{client: c, path: downlinkOf("eve-" + t.Name())}), "watch": s.listen(t, call{client: c, path: "/a2a/approvals"}.events()),
			"request": s.listen(t, post(0, question("q-"+t.Name(), "bob-"+t.Name())).over(c).events()),
		} {
			for range 4 { // the first of a downlink is its retry line
				if e, ok := d.raw(); !ok || e != (event{}) {
					t.Errorf("%s: got %+v, want a comment", name, e)
				}
			}
			d.close()
		}
		bob.Drop()
	})
}

func TestADownlinkIsTakenOverByWhoHasItsToken(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d := s.downlink(t, 0, "eve")
	_, a := s.tryListen(t, call{edge: 1, path: downlinkOf("eve")})
	a.refused(t, wrong{Code: agora.AgentExists})
	_, a = s.tryListen(t, call{edge: 1, path: downlinkOf("eve", "resume_token", "nonsense")})
	if a == nil || a.status != 409 && a.status != 400 {
		t.Errorf("a wrong token is answered %+v", a)
	}
	next := s.downlink(t, 1, "eve", "resume_token", d.resp.Header.Get("Agora-Resume-Token"))
	d.endsWith(agora.AgentExists)
	k := s.socket(t, 2, "eve", "resume_token", next.resp.Header.Get("Agora-Resume-Token"))
	next.endsWith(agora.AgentExists)
	s.tells(t, "eve", 1, 1)
	k.Expect(`{"header":{"msg_id":"eve-1","type":"notification","from":"al","to":"eve"}}`)
}

// A page's EventSource can set no header, and comes back by itself.
func TestADownlinkIsOpenedByATokenInItsURLAndSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	s, folk := guarded(t, setup{Options: agoratest.Options{Edges: 1}})
	s.each(t, func(t *testing.T, c *http.Client) {
		eve := "eve-" + c.Transport.(*http.Transport).Protocols.String()
		resp, err := s.request(await.Context(t), call{client: c, path: downlinkOf(eve, "token", "t/"+eve+"/"+eve)})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		first, err := bufio.NewReader(resp.Body).ReadString('\n')
		if resp.StatusCode != http.StatusOK || first != "retry: 1000\n" {
			t.Errorf("%d, and it begins with %q, %v", resp.StatusCode, first, err)
		}
		token := "t/other-" + eve + "/other-" + eve
		d := s.listen(t, call{client: c, path: downlinkOf("other-"+eve, "token", token)})
		s.ask(t, post(0, said{id: "1", kind: "notification", from: eve, to: "other-" + eve}.String()).by("t/"+eve)).is(t, 202, "")
		d.expect(`{"header":{"msg_id":"1","type":"notification","from":"` + eve + `","to":"other-` + eve + `"}}`)
		folk.revoke("other-" + eve)
		d.endsWith(agora.Unauthorized)
	})
}

func TestADownlinkWhoseSessionAnOperatorEndsSaysSo(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.each(t, func(t *testing.T, c *http.Client) {
		eve := "eve-" + c.Transport.(*http.Transport).Protocols.String()
		d := s.listen(t, call{client: c, path: downlinkOf(eve)})
		if err := operator.New(s.Node(1)).Kick(await.Context(t), agora.DefaultTenant, agora.AgentID(eve)); err != nil {
			t.Fatal(err)
		}
		d.endsWith(agora.Unavailable)
		s.listen(t, call{client: c, edge: 2, path: downlinkOf(eve)})
	})
}

func TestADrainingEdgeSendsItsDownlinksElsewhere(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d, k, bob := s.downlink(t, 0, "eve"), s.socket(t, 0, "kim"), s.socket(t, 1, "bob")
	got := s.start(t, post(0, question("q", "bob")))
	events := s.listen(t, post(0, question("e", "bob")).events())
	bob.ExpectAll(asked("q", "bob"), asked("e", "bob"))
	s.StopEdge(0)
	e, _ := d.next()
	if e.name != "reconnect" || agoratest.Frame(e.data).Match(`{"after_ms":"<any>"}`) != "" || strings.TrimLeft(fieldOf(e.data, "after_ms"), "0123456789") != "" {
		t.Errorf("got %+v, want a reconnect", e)
	}
	d.ends()
	k.Expect(`{"header":{"msg_id":"<any>","type":"notification","from":"agora","timestamp":"<any>"},"payload":{"action":"reconnect","after_ms":"<any>"}}`)
	k.AwaitClosed(1012)
	await.Recv(t, "an answer", got).refused(t, wrong{Code: agora.Unavailable, Parent: "q", To: "al"})
	e, _ = events.next()
	faulty(t, e.data, wrong{Code: agora.Unavailable, Parent: "e", To: "al"})
	events.ends()
	for _, id := range []string{"q", "e"} { // are asked again
		_, response := replies(id)
		got := s.start(t, post(2, question(id, "bob")))
		bob.Send(response)
		await.Recv(t, "an answer", got).is(t, 200, response)
	}
	goesOn(bob)
	s.ask(t, post(1, said{id: "1", kind: "notification", from: "al", to: "eve"}.String())).is(t, 202, "")
	s.downlink(t, 2, "eve", "last_seq", d.resp.Header.Get("Agora-Last-Seq")).expect(`{"header":{"msg_id":"1","type":"notification","from":"al","to":"eve"}}`)
}

func TestADownlinkWhoseCredentialsAreRevokedEndsWithAnError(t *testing.T) {
	t.Parallel()
	s, folk := guarded(t, setup{Options: agoratest.Options{Edges: 1}})
	s.each(t, func(t *testing.T, c *http.Client) {
		who := "p" + c.Transport.(*http.Transport).Protocols.String()
		token := "t/" + who
		d, watch := s.listen(t, call{client: c, path: downlinkOf(who), token: token}), s.listen(t, call{client: c, path: "/a2a/approvals", token: token}.events())
		k := s.socket(t, 0, "k"+who, "token", token)
		folk.revoke(who)
		for _, d := range []*downlink{d, watch} {
			e, _ := d.next()
			faulty(t, e.data, wrong{Code: agora.Unauthorized, To: fieldOf(e.data, "header", "to")})
			d.ends()
		}
		faulty(t, string(k.Take("an error")), wrong{Code: agora.Unauthorized})
		k.ExpectClosed(1008)
	})
}

func TestLinesOfAPayloadPassEventsButForTheirCR(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d, k := s.downlink(t, 1, "eve"), s.socket(t, 2, "kim")
	const payload = "{\"a\":\r\n\t1,\r\"b\":\n\n2 }"
	for _, to := range []string{"eve", "kim"} {
		s.ask(t, post(0, said{id: "1", kind: "notification", from: "al", to: to, payload: payload}.String())).is(t, 202, "")
	}
	e, _ := d.next()
	if want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(payload); !strings.Contains(e.data, want) {
		t.Errorf("eve got %q, want %q in it", e.data, want)
	}
	if f := string(k.Take("a notification")); !strings.Contains(f, payload) {
		t.Errorf("kim got %q, want %q in it", f, payload)
	}
}

// stuck opens a downlink by a connection of its own, of which nothing is read once it stands.
func (s *site) stuck(t *testing.T, k int, agent string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(await.Context(t), "tcp", strings.TrimPrefix(s.HTTP(k), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", downlinkOf(agent)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
	t.Cleanup(func() {
		c.Close() // before the body, of which there is no end
		if err == nil {
			resp.Body.Close()
		}
	})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("no downlink: %v", err)
	}
	return c
}

func TestAnAgentThatReadsNothingKeepsItsID(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.stuck(t, 0, "eve")
	for k := range 3 {
		_, a := s.tryListen(t, call{edge: k, path: downlinkOf("eve")})
		if a == nil {
			t.Fatal("another eve is let in")
		}
		a.refused(t, wrong{Code: agora.AgentExists})
	}
}

func TestAnAgentThatReadsNothingCostsOthersNothing(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Grace: time.Hour, Node: edge.Config{MaxRecords: 1 << 14}}})
	s.stuck(t, 0, "eve")
	d, al := s.downlink(t, 0, "dan"), s.socket(t, 0, "al")
	large := `"` + strings.Repeat("x", 16<<10) + `"`
	for n := range 200 { // some megabytes, which no system takes for who reads nothing
		al.Send(said{id: fmt.Sprint("l-", n), kind: "notification", from: "al", to: "eve", payload: large}.String())
		al.Send(said{id: fmt.Sprint("dan-", n), kind: "notification", from: "al", to: "dan", payload: fmt.Sprint(n)}.String())
	}
	d.hears("dan", 0, 199, false)
	goesOn(al)
}

func TestAnIDIsHeldWhateverDialectItsAgentHas(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.ws(t, 0, "wes")
	s.downlink(t, 1, "eve")
	for _, c := range []call{{edge: 1, path: downlinkOf("wes")}, {edge: 2, path: downlinkOf("eve"), client: s.two}} {
		_, a := s.tryListen(t, c)
		a.refused(t, wrong{Code: agora.AgentExists})
	}
	c := agoratest.Connect(t, agoratest.Direct{}, s.URL(2), "agent_id=eve", nil)
	c.Expect(`{"type":"error","code":"AGENT_EXISTS"}`)
	c.ExpectClosed(4009)
}

func TestTheHeadOfADownlinkBindsNobody(t *testing.T) {
	t.Parallel()
	s := patient(t)
	s.each(t, func(t *testing.T, c *http.Client) {
		s.ask(t, call{client: c, method: http.MethodHead, path: downlinkOf("eve")}).is(t, 200, "")
		d := s.listen(t, call{client: c, edge: 1, path: downlinkOf("eve")})
		d.close()
		ctx, cancel := context.WithCancel(await.Context(t))
		cancel()
		s.asks(ctx, call{client: c, path: downlinkOf("eve")}) // gone before it is answered
	})
}

func TestAPositionThatTheLogHasNotComeToIsToldByAGapAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := patient(t)
	d, al := s.downlink(t, 0, "eve"), s.socket(t, 0, "al", "receipts", "acked")
	says := func(n int) {
		al.Send(said{id: fmt.Sprint("eve-", n), kind: "notification", from: "al", to: "eve", payload: fmt.Sprint(n)}.String())
	}
	says(1)
	all := 1
	last, err := strconv.ParseUint(d.hears("eve", 1, 1, false), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	for _, beyond := range []uint64{last + 2<<agora.SeqShift, agora.MaxSeq - 1} { // which the next mail would have, or no mail has for long
		d := s.downlink(t, 1, "eve", "last_seq", strconv.FormatUint(beyond, 10))
		if got := d.resp.Header.Get("Agora-Last-Seq"); got >= fmt.Sprint(last) {
			t.Errorf("delivery goes on after %s, and all up to %d is there to be delivered", got, last)
		}
		says(all + 1)
		says(all + 2)
		d.expect(`{"header":{"msg_id":"<any>","type":"notification","from":"agora","to":"eve","timestamp":"<any>"},"payload":{"action":"gap","from_seq":1,"to_seq":"<any>"}}`)
		d.hears("eve", 1, all, true)
		d.hears("eve", all+1, all+2, false)
		all += 2
		d.close()
	}
	for _, f := range al.Pending() {
		t.Errorf("al is told %s, and eve has named no position that it was given", f)
	}
	d = s.downlink(t, 2, "eve", "last_seq", strconv.FormatUint(last, 10))
	d.hears("eve", 2, all, false)
	al.Expect(`{"payload":{"action":"receipt","status":"acked","agent":"eve"}}`)
}
