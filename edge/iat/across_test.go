package iat_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	calls "github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// The agents of this file that are called wes and win are of the relay's dialect.

func TestAgentsOfTheRelayAnswerRequestsThatArePosted(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes := s.ws(t, 1, "wes")
	s.each(t, func(t *testing.T, c *http.Client) {
		for n, payload := range []string{`{"n": 1.0,"half":"\ud83d"}`, `[ 1 ]`, `"text"`, `null`, `1e400`} {
			id := fmt.Sprint(t.Name(), n)
			got := s.start(t, post(0, said{id: id, kind: "request", from: "al", to: "wes", payload: payload}.String()).over(c))
			f := wes.Expect(fmt.Sprintf(`{"type":"message","from":"al","request_id":%q}`, id))
			if f.Raw("payload") != payload {
				t.Errorf("wes got %s, want %s", f.Raw("payload"), payload)
			}
			wes.Send(fmt.Sprintf(`{"type":"reply","to":"al","request_id":%q,"payload":%s}`, id, payload))
			a := await.Recv(t, "an answer", got)
			a.is(t, 200, fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"wes","to":"al","timestamp":"<any>"},"metadata":"<any>"}`, id))
			if got := fieldRaw(a.body, "payload"); got != payload {
				t.Errorf("al got %s, want %s", got, payload)
			}
		}
	})
}

func TestAReplyNamesItsRequestBesideItsPayloadOrAnswersTheOnlyOne(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes := s.ws(t, 1, "wes")
	got := s.start(t, post(0, said{id: "m-1", kind: "request", from: "al", to: "wes", payload: `{"request_id":"own"}`}.String()))
	wes.Expect(`{"type":"message","from":"al","request_id":"m-1","payload":{"request_id":"own"}}`)
	wes.Send(`{"type":"reply","to":"al","request_id":"m-1","payload":{"request_id":"own","ok":true}}`)
	await.Recv(t, "an answer", got).is(t, 200, `{"payload":{"request_id":"own","ok":true}}`)
	got = s.start(t, post(0, question("m-2", "wes")))
	wes.Expect(`{"type":"message","from":"al","request_id":"m-2"}`)
	wes.Send(`{"type":"reply","to":"al","payload":"yes"}`)
	await.Recv(t, "an answer", got).is(t, 200, `{"payload":"yes"}`)
}

func TestStreamedAnswersOfAgentsOfTheRelayAreEventsOrGathered(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes := s.ws(t, 1, "wes")
	s.each(t, func(t *testing.T, c *http.Client) {
		id := "stream-" + t.Name()
		whole, events := s.start(t, post(0, question(id, "wes")).over(c)), s.start(t, post(2, question(id, "wes")).over(c).events())
		wes.Expect(fmt.Sprintf(`{"type":"message","from":"al","request_id":%q}`, id))
		wes.Send(fmt.Sprintf(`{"type":"reply","to":"al","stream_id":%q,"stream":true,"request_id":%q}`, id, id))
		for _, text := range []string{`one `, `\"two\"\n`} {
			wes.Send(fmt.Sprintf(`{"type":"reply_chunk","to":"al","stream_id":%q,"chunk":"%s"}`, id, text))
		}
		wes.Send(fmt.Sprintf(`{"type":"reply_end","to":"al","stream_id":%q}`, id))
		header := func(kind string) string {
			return fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":%q,"from":"wes","to":"al","timestamp":"<any>"},"metadata":"<any>"`, id, kind)
		}
		await.Recv(t, "a response", whole).is(t, 200, header("response")+`,"payload":{"text":"one \"two\"\n"}}`)
		a := await.Recv(t, "events", events)
		d := parsed(a.body)
		want := []string{header("chunk") + `,"payload":{"text":"one "}}`, header("chunk") + `,"payload":{"text":"\"two\"\n"}}`, header("response") + `,"payload":{}}`}
		if len(d) != len(want) {
			t.Fatalf("%d events, want %d: %s", len(d), len(want), a.body)
		}
		for i, w := range want {
			if why := agoratest.Frame(d[i].data).Match(w); why != "" {
				t.Errorf("event %d is %s, want %s: %s", i, d[i].data, w, why)
			}
		}
	})
}

// An agent that knows no name but that in the payload repeats it there: its reply is that to the request which has it.
func TestAReplyMayNameItsRequestByWhatThePayloadOfThatCallsIt(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes, kim := s.ws(t, 1, "wes"), s.socket(t, 2, "kim")
	asks := func(from, id, own string) said {
		return said{id: id, kind: "request", from: from, to: "wes", payload: `{"request_id":"` + own + `"}`}
	}
	var got []<-chan answer
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		own := map[string]string{"1": "a", "2": "b", "3": "twice", "4": "twice", "5": "3"}[id]
		got = append(got, s.start(t, post(0, asks("al", id, own).String())))
		wes.Expect(fmt.Sprintf(`{"type":"message","from":"al","request_id":%q,"payload":{"request_id":%q}}`, id, own))
	}
	kim.Send(asks("kim", "9", "a").String())
	wes.Expect(`{"type":"message","from":"kim","request_id":"9"}`)
	replies := func(to, own string, n int) {
		wes.Send(fmt.Sprintf(`{"type":"reply","to":%q,"payload":{"request_id":%q,"n":%d}}`, to, own, n))
	}
	for n, own := range []string{"a", "b"} {
		replies("al", own, n)
		id := fmt.Sprint(n + 1)
		await.Recv(t, "an answer", got[n]).is(t, 200, fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"wes","to":"al","timestamp":"<any>"},"payload":{"request_id":%q,"n":%d}}`, id, own, n))
	}
	replies("kim", "a", 9)
	kim.Expect(`{"header":{"msg_id":"<any>","parent_id":"9","type":"response","from":"wes","to":"kim","timestamp":"<any>"},"payload":{"request_id":"a","n":9}}`)
	replies("al", "twice", 3) // which answers neither, and is mail to who has no mailbox
	wes.Expect(`{"type":"error","code":"AGENT_NOT_FOUND","to":"al"}`)
	replies("al", "3", 3) // the name of one, and what another one has in its payload
	await.Recv(t, "an answer", got[2]).is(t, 200, `{"payload":{"request_id":"3","n":3}}`)
	for n, id := range []string{"4", "5"} {
		wes.Send(fmt.Sprintf(`{"type":"reply","to":"al","request_id":%q,"payload":%s}`, id, id))
		await.Recv(t, "an answer", got[3+n]).is(t, 200, fmt.Sprintf(`{"payload":%s}`, id))
	}
}

func TestAgentsOfTheRelayAskAgentsOfThisDialect(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes, bob, eve := s.ws(t, 0, "wes"), s.socket(t, 1, "bob"), s.downlink(t, 2, "eve")
	wes.Send(`{"type":"send","to":"bob","payload":{ "request_id" : "r-1", "n":1.0}}`, `{"type":"send","to":"eve","payload":{"request_id":"r-2"}}`)
	f := bob.Expect(`{"header":{"msg_id":"r-1","type":"request","from":"wes","to":"bob","timestamp":"<any>"},"metadata":"<any>"}`)
	if got := f.Raw("payload"); got != `{ "request_id" : "r-1", "n":1.0}` {
		t.Errorf("bob got %s", got)
	}
	bob.Send(said{id: "a-1", kind: "response", parent: "r-1", from: "bob", to: "wes", payload: `{"n": 2.0}`}.String())
	wes.Expect(`{"type":"reply","from":"bob","request_id":"r-1","payload":{"n":2.0}}`)
	eve.expect(`{"header":{"msg_id":"r-2","type":"request","from":"wes","to":"eve","timestamp":"<any>"}}`)
	for i, text := range []string{"one", "two"} {
		s.ask(t, post(0, said{id: fmt.Sprint("c-", i), kind: "chunk", parent: "r-2", from: "eve", to: "wes", payload: `{"text":"` + text + `"}`}.String())).is(t, 202, "")
	}
	s.ask(t, post(1, said{id: "a-2", kind: "response", parent: "r-2", from: "eve", to: "wes", payload: `{"done":1}`}.String())).is(t, 202, "")
	stream := wes.Expect(`{"type":"reply","from":"eve","stream":true,"request_id":"r-2"}`).Text("stream_id")
	wes.Expect(fmt.Sprintf(`{"type":"reply_chunk","from":"eve","stream_id":%q,"chunk":"one"}`, stream), fmt.Sprintf(`{"type":"reply_chunk","from":"eve","stream_id":%q,"chunk":"two"}`, stream),
		fmt.Sprintf(`{"type":"reply_end","from":"eve","stream_id":%q,"payload":{"done":1}}`, stream))
}

func TestOneShotsWithoutANameAreAnsweredByTheNameThatTheyAreGiven(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes, bob := s.ws(t, 0, "wes"), s.socket(t, 1, "bob")
	wes.Send(`{"type":"send","to":"bob","payload":"hello"}`)
	id := fieldOf(string(bob.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"wes","to":"bob","timestamp":"<any>"},"payload":"hello"}`)), "header", "msg_id")
	bob.Send(said{id: "a", kind: "response", parent: id, from: "bob", to: "wes", payload: `"hi"`}.String())
	wes.Expect(fmt.Sprintf(`{"type":"reply","from":"bob","request_id":%q,"payload":"hi"}`, id))
}

func TestStreamsCrossBothWays(t *testing.T) {
	t.Parallel()
	s := patient(t)
	wes, bob := s.ws(t, 0, "wes"), s.socket(t, 1, "bob")
	wes.Send(`{"type":"send","to":"bob","stream_id":"s","stream":true,"payload":{"a":1}}`, `{"type":"send_chunk","to":"bob","stream_id":"s","chunk":"x\ny"}`, `{"type":"send_end","to":"bob","stream_id":"s"}`)
	id := fieldOf(string(bob.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"wes","to":"bob","timestamp":"<any>"},"metadata":"<any>","payload":{"a":1}}`)), "header", "msg_id")
	bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"chunk","from":"wes","to":"bob","timestamp":"<any>"},"payload":{"text":"x\ny"}}`, id),
		fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"notification","from":"wes","to":"bob","timestamp":"<any>"},"payload":{"action":"stream_end"}}`, id))
	bob.Send(said{id: "t", kind: "request", from: "bob", to: "wes", metadata: `"stream":true`, payload: `[1]`}.String(),
		said{id: "t-1", kind: "chunk", parent: "t", from: "bob", to: "wes", payload: `{"text":"z"}`}.String(),
		said{id: "t-2", kind: "notification", parent: "t", from: "bob", to: "wes", payload: `{"action":"stream_end"}`}.String())
	wes.Expect(`{"type":"message","from":"bob","stream_id":"t","stream":true,"payload":[1]}`, `{"type":"message_chunk","from":"bob","stream_id":"t","chunk":"z"}`, `{"type":"message_end","from":"bob","stream_id":"t"}`)
	wes.Send(`{"type":"send","to":"bob","stream_id":"u","stream":true}`)
	id = fieldOf(string(bob.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"wes","to":"bob","timestamp":"<any>"}}`)), "header", "msg_id")
	bob.Send(said{id: "no", kind: "notification", parent: id, from: "bob", to: "wes", payload: `{"action":"cancel"}`}.String())
	wes.Expect(`{"type":"cancel","from":"bob","stream_id":"u"}`)
}

// What one without a session asks by a stream is a stream to an agent of this dialect, which answers, cancels and is
// told as with any.
func TestACallThatIsAStreamIsOneToAnAgentOfEnvelopes(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 1, "bob")
	who, err := s.Node(0).Authenticate(await.Context(t), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(id string) *calls.Answer {
		t.Helper()
		a, err := who.Call(await.Context(t), "ann", calls.Request{Streams: true, Message: agora.Message{ID: id, To: agora.Address{Agent: "bob"}, Body: []byte(`{"request_id":"other"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Say(await.Context(t), agora.Message{Part: agora.Chunk, Media: agora.MediaText, Body: []byte("more")}); err != nil {
			t.Fatal(err)
		}
		const head = `"type":%q,"from":"ann","to":"bob","timestamp":"<any>"}`
		bob.Expect(fmt.Sprintf(`{"header":{"msg_id":%q,`+head+`,"metadata":{"stream":true,"ttl":2,"trace_id":"<any>"},"payload":{"request_id":"other"}}`, id, "request"),
			fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,`+head+`,"payload":{"text":"more"}}`, id, "chunk"))
		return a
	}
	told := func(id, payload string) {
		t.Helper()
		bob.Expect(fmt.Sprintf(`{"header":{"msg_id":"<any>","parent_id":%q,"type":"notification","from":"ann","to":"bob","timestamp":"<any>"},"payload":%s}`, id, payload))
	}
	a := asks("one")
	defer a.Close()
	if err := a.Say(await.Context(t), agora.Message{Part: agora.End}); err != nil {
		t.Fatal(err)
	}
	told("one", `{"action":"stream_end"}`)
	bob.Send(said{id: "one-1", kind: "chunk", parent: "one", from: "bob", to: "ann", payload: `{"text":"hi"}`}.String(),
		said{id: "one-2", kind: "response", parent: "one", from: "bob", to: "ann", payload: `{"ok":true}`}.String())
	for _, want := range []string{"", "hi", `{"ok":true}`} {
		if m, err := a.Next(await.Context(t)); err != nil || string(m.Body) != want {
			t.Fatalf("Next = %+v, %v; want %s", m, err, want)
		}
	}
	a = asks("two")
	a.Close()
	told("two", `{"action":"stream_aborted","code":"STREAM_ABORTED"}`)
	a = asks("three")
	defer a.Close()
	bob.Send(said{id: "no", kind: "notification", parent: "three", from: "bob", to: "ann", payload: `{"action":"cancel"}`}.String())
	if _, err := a.Next(await.Context(t)); err == nil || agora.AsError(err).Code != agora.StreamAborted {
		t.Errorf("the agent has cancelled it: %v", err)
	}
}
