package iat_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// patient is a site at which nothing is given up before a test is over.
func patient(t *testing.T) *site {
	return open(t, setup{Options: agoratest.Options{Edges: 3, Grace: time.Hour}})
}

// question is a request of al's to an agent.
func question(id, to string) string {
	return said{id: id, kind: "request", from: "al", to: to, payload: `{"q":` + agoratest.Quote(id) + `}`}.String()
}

// asked is how it comes to the agent.
func asked(id, to string) string {
	return fmt.Sprintf(`{"header":{"msg_id":%q,"type":"request","from":"al","to":%q},"metadata":"<any>","payload":{"q":%q}}`, id, to, id)
}

// replies are what bob says to it: two chunks and a response, as they come to al.
func replies(id string) (chunks []string, response string) {
	for i := range 2 {
		chunks = append(chunks, said{id: fmt.Sprint(id, "-", i), kind: "chunk", parent: id, from: "bob", to: "al", payload: fmt.Sprintf(`{"text":"%d\n"}`, i)}.String())
	}
	return chunks, said{id: id + "-end", kind: "response", parent: id, from: "bob", to: "al", payload: `{"n": 1.0}`}.String()
}

// eventsOf returns envelopes as events.
func eventsOf(envelopes ...string) (text string) {
	for _, e := range envelopes {
		text += "data: " + e + "\n\n"
	}
	return text
}

func TestARequestThatIsPostedAgainElsewhereIsDoneOnceAndAnsweredTheSame(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 2, "bob")
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "again-" + t.Name()
		chunks, response := replies(id)
		first := s.start(t, post(0, question(id, "bob")).over(c).events())
		bob.Expect(asked(id, "bob"))
		bob.Send(chunks[0])
		second, third := s.start(t, post(1, question(id, "bob")).over(c).events()), s.start(t, post(1, question(id, "bob")).over(c))
		bob.Send(chunks[1], response)
		for _, a := range []answer{await.Recv(t, "events", first), await.Recv(t, "events elsewhere", second), s.ask(t, post(2, question(id, "bob")).over(c).events())} {
			if want := eventsOf(append(chunks, response)...); a.status != 200 || a.body != want {
				t.Errorf("answered %d\n%s, want\n%s", a.status, a.body, want)
			}
		}
		for _, a := range []answer{await.Recv(t, "the response", third), s.ask(t, post(0, question(id, "bob")).over(c))} {
			if a.status != 200 || a.body != response+"\n" {
				t.Errorf("answered %d\n%s, want\n%s", a.status, a.body, response)
			}
		}
		goesOn(bob)
		other := said{id: id, kind: "request", from: "al", to: "bob", payload: `{"q":"another"}`}
		s.ask(t, post(1, other.String()).over(c)).refused(t, wrong{Code: agora.InvalidRequest, Parent: id, To: "al"})
	})
}

func TestTwoPostsAtOneTimeAreOneRequest(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 2, "bob")
	for n := range 10 {
		id := fmt.Sprint("twin-", n)
		_, response := replies(id)
		var got []<-chan answer
		for k := range 3 {
			got = append(got, s.start(t, post(k, question(id, "bob")).over(s.two)))
		}
		bob.Expect(asked(id, "bob"))
		bob.Send(response)
		for _, g := range got {
			if a := await.Recv(t, "an answer", g); a.status != 200 || a.body != response+"\n" {
				t.Errorf("answered %d %s", a.status, a.body)
			}
		}
	}
	goesOn(bob)
}

func TestWhoGoesAwayAndPostsAgainIsAnswered(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 2, "bob")
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "back-" + t.Name()
		chunks, response := replies(id)
		d := s.listen(t, post(0, question(id, "bob")).over(c).events())
		bob.Expect(asked(id, "bob"))
		bob.Send(chunks[0])
		d.expect(chunks[0])
		d.close()
		bob.Send(chunks[1], response) // while nobody waits
		if a := s.ask(t, post(1, question(id, "bob")).over(c).events()); a.body != eventsOf(append(chunks, response)...) {
			t.Errorf("answered %d\n%s", a.status, a.body)
		}
		goesOn(bob)
	})
}

func TestWhoGoesAwayForGoodHasTheAddresseeTold(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Grace: 100 * time.Millisecond}})
	bob := s.socket(t, 1, "bob")
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "gone-" + t.Name()
		ctx, cancel := context.WithCancel(await.Context(t))
		got := make(chan answer, 1)
		go func() { got <- s.asks(ctx, post(0, question(id, "bob")).over(c)) }()
		bob.Expect(asked(id, "bob"))
		cancel()
		<-got
		bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"notification","from":"al","to":"bob","timestamp":"<any>"},"payload":{"action":"cancel","code":"STREAM_ABORTED"}}`, id))
		s.ask(t, post(0, question(id, "bob")).over(c)).refused(t, wrong{Code: agora.StreamAborted, Parent: id, To: "al"})
	})
}

func TestWhatRunsOutOfTimeEndsWithTheErrorAsItsLastEvent(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 1, "bob")
	s.downlink(t, 2, "al") // who is known: what comes too late may be mail
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "late-" + t.Name()
		chunks, response := replies(id)
		late := said{id: id, kind: "request", from: "al", to: "bob", metadata: `"deadline_ms":500`}
		d := s.listen(t, post(0, late.String()).over(c).events())
		if f := bob.Take("a request"); !strings.Contains(string(f), `"deadline_ms":`) {
			t.Errorf("bob does not know how much time there is: %s", f)
		}
		bob.Send(chunks[0])
		d.expect(chunks[0])
		e, _ := d.next()
		faulty(t, e.data, wrong{Code: agora.Timeout, Parent: id, To: "al"})
		d.ends()
		bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"notification","from":"al","to":"bob","timestamp":"<any>"},"payload":{"action":"cancel","code":"TIMEOUT"}}`, id))
		for _, again := range []call{post(0, late.String()), post(2, late.String()), post(2, late.String()).events()} {
			s.ask(t, again.over(c)).refused(t, wrong{Code: agora.Timeout, Parent: id, To: "al"}) // still
		}
		bob.Send(response) // to nobody any more, which is no error
		goesOn(bob)
	})
}

// Who is asked learns how long its answer is waited for, whether its asker has said so or not.
func TestARequestArrivesWithTheTimeForWhichItIsWaited(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: iat.Config{MaxWait: time.Hour}})
	bob := s.socket(t, 0, "bob")
	for id, most := range map[string]time.Duration{"": time.Hour, `"deadline_ms":7200000`: time.Hour, `"deadline_ms":1800000`: time.Hour / 2} {
		s.start(t, post(0, said{id: "q" + id, kind: "request", from: "al", to: "bob", metadata: id}.String()))
		left, err := strconv.Atoi(fieldOf(string(bob.Take("a request")), "metadata", "deadline_ms"))
		if d := time.Duration(left) * time.Millisecond; err != nil || d > most || d <= most-await.Long {
			t.Errorf("%s: bob has %v, want %v at most", id, d, most)
		}
	}
}

func TestAnAddresseeThatIsLostHasItsCallerTold(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 3, Grace: 50 * time.Millisecond, Leases: []time.Duration{2: time.Second}}}) // edge 2 is there to sweep
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "lost-" + t.Name()
		chunks, _ := replies(id)
		name := "bob-" + c.Transport.(*http.Transport).Protocols.String()
		bob := s.socket(t, 1, name)
		d := s.listen(t, post(0, question(id, name)).over(c).events())
		bob.Expect(asked(id, name))
		bob.Send(chunks[0])
		d.expect(strings.ReplaceAll(chunks[0], `"bob"`, `"`+name+`"`))
		bob.Drop()
		e, _ := d.next()
		faulty(t, e.data, wrong{Code: agora.StreamAborted, Parent: id, To: "al"})
		d.ends()
		s.ask(t, post(0, question(id, name)).over(c)).refused(t, wrong{Code: agora.StreamAborted, Parent: id, To: "al"})
	})
}

func TestItsCallerGivesARequestUp(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 2, "bob")
	got := s.start(t, post(0, question("given-up", "bob")))
	bob.Expect(asked("given-up", "bob"))
	up := said{id: "c", kind: "notification", parent: "given-up", from: "al", to: "bob", payload: `{"action":"cancel"}`}
	s.ask(t, post(1, up.String())).is(t, 202, "")
	bob.Expect(`{"header":{"msg_id":"<any>","parent_id":"given-up","type":"notification","from":"al","to":"bob","timestamp":"<any>"},"payload":{"action":"cancel","code":"<any>"}}`)
	await.Recv(t, "an answer", got).refused(t, wrong{Code: agora.StreamAborted, Parent: "given-up", To: "al"})
	goesOn(bob)
}
