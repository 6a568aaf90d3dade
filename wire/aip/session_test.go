package aip

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

func decoded(t testing.TB, raw []byte) *AgentMessage {
	t.Helper()
	m := new(AgentMessage)
	if err := proto.Unmarshal(raw, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// quest returns an encoded message of al to bob in session s.
func quest(status AgentMessage_SessionStatus, items ...Item) []byte {
	return (&Message{Sender: "al", Receiver: "bob", Session: "s", Status: status, Content: items}).Append(nil)
}

func text(s string) Item { return Item{Mode_TEXT, []byte(s)} }

func TestQuestsThatDoNotFitTheirSessionAreRefused(t *testing.T) {
	start := Message{Sender: "al", Receiver: "bob", Session: "s"}
	with := func(change func(m *Message)) *Message {
		m := start
		m.Status = AgentMessage_HOLD_QUEST
		change(&m)
		return &m
	}
	status := func(s AgentMessage_SessionStatus) *Message { return with(func(m *Message) { m.Status = s }) }
	hold, stop := status(AgentMessage_HOLD_QUEST), status(AgentMessage_STOP_QUEST)
	for name, c := range map[string]struct {
		said []*Message
		want string
	}{
		"HOLD first":            {[]*Message{hold}, TextFirstNotStart},
		"STOP first":            {[]*Message{stop}, TextFirstNotStart},
		"a response first":      {[]*Message{status(AgentMessage_HOLD_RESPONSE)}, TextFirstNotStart},
		"no session":            {[]*Message{{Sender: "al", Receiver: "bob"}}, TextNoSession},
		"START within":          {[]*Message{&start, hold, &start}, "START_QUEST must be the first message of its session"},
		"a response within":     {[]*Message{&start, status(AgentMessage_STOP_RESPONSE)}, "A caller's message must not be STOP_RESPONSE"},
		"a status of 9":         {[]*Message{&start, status(9)}, "A caller's message must not be 9"},
		"another session":       {[]*Message{&start, with(func(m *Message) { m.Session = "t" })}, "session_id is not that of START_QUEST"},
		"another sender":        {[]*Message{&start, with(func(m *Message) { m.Sender = "eve" })}, "sender_id is not that of START_QUEST"},
		"another receiver":      {[]*Message{&start, with(func(m *Message) { m.Receiver = "eve" })}, "receiver_id is not that of START_QUEST"},
		"a message behind STOP": {[]*Message{&start, stop, hold}, "A message follows STOP_QUEST"},
		"STOP twice":            {[]*Message{&start, hold, stop, stop}, "A message follows STOP_QUEST"},
	} {
		var r QuestReader
		for n, m := range c.said {
			_, err := r.Read(m.Append(nil))
			if last := n == len(c.said)-1; !last && err != nil || last && (!isCode(err, agora.InvalidRequest) || agora.AsError(err).Message != c.want) {
				t.Errorf("%s: message %d: %v, want %q", name, n, err, c.want)
			}
		}
	}
}

func TestQuestsMayLeaveOutWhatStartHasSaid(t *testing.T) {
	r := Rules{As: "al@corp"}
	for _, m := range []*Message{
		{Sender: "al", Receiver: "bob", Session: "s"}, {Status: AgentMessage_HOLD_QUEST}, {Status: AgentMessage_HOLD_QUEST, Sender: "al@corp", Session: "s"},
		{Status: AgentMessage_STOP_QUEST, Sender: "al", Receiver: "bob"},
	} {
		e, err := ReadEnvelope(m.Append(nil))
		if err == nil {
			err = r.Check(&e)
		}
		if err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if !r.Stopped() || r.Session() != "s" {
		t.Errorf("stopped %v in %q", r.Stopped(), r.Session())
	}
}

// saysThere has quests go to a mailbox and from there to a node, and returns what arrives.
func saysThere(t *rapid.T, said [][]byte) (heard []*AgentMessage) {
	var r QuestReader
	var w *QuestWriter
	for _, raw := range said {
		parts, err := r.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		for n := range parts {
			parts[n].From = "al"
			if w == nil {
				w = NewQuestWriter(&parts[n], "bob", "", 0)
			}
			quests, err := w.Write(&parts[n])
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range quests {
				m := new(AgentMessage)
				if err := proto.Unmarshal(q, m); err != nil {
					t.Fatal(err)
				}
				heard = append(heard, m)
			}
		}
	}
	return heard
}

func contentIn(t interface{ Fatal(...any) }, all ...[]byte) (items []Item) {
	for _, raw := range all {
		i, err := Items(raw)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, i...)
	}
	return items
}

func TestASessionThatPassesAMailboxSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := itemsOf(texts, datas)
		said := [][]byte{quest(AgentMessage_START_QUEST, content.Draw(t, "start")...)}
		for range rapid.IntRange(0, 4).Draw(t, "holds") {
			said = append(said, quest(AgentMessage_HOLD_QUEST, content.Draw(t, "hold")...))
		}
		said = append(said, quest(AgentMessage_STOP_QUEST, content.Draw(t, "stop")...))
		heard := saysThere(t, said)
		var again [][]byte
		for n, m := range heard {
			want := AgentMessage_HOLD_QUEST
			switch n {
			case 0:
				want = AgentMessage_START_QUEST
			case len(heard) - 1:
				want = AgentMessage_STOP_QUEST
			}
			if m.GetSessionStatus() != want || m.GetSenderId() != "al" || m.GetReceiverId() != "bob" || m.GetSessionId() != "al/s" || m.GetMessageId() != fmt.Sprint("al/s#", n+1) {
				t.Fatalf("message %d of %d is %v", n, len(heard), m.GetSessionStatus())
			}
			raw, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, raw)
		}
		if !sameItems(withoutCuts(contentIn(t, again...)), withoutCuts(contentIn(t, said...))) {
			t.Fatal("the content is another one")
		}
	})
}

func TestRepliesThatPassAMailboxSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := itemsOf(texts, datas)
		var said [][]byte
		for range rapid.IntRange(0, 4).Draw(t, "holds") {
			said = append(said, quest(AgentMessage_HOLD_RESPONSE, content.Draw(t, "hold")...))
		}
		said = append(said, quest(AgentMessage_STOP_RESPONSE, content.Draw(t, "stop")...))
		r, w := ResponseReader{To: "al", Request: "q"}, NewResponseWriter("bob", "al", "s", 0)
		stopAt := rapid.IntRange(0, len(said)).Draw(t, "stop at")
		var heard [][]byte
		for n, raw := range said {
			if n == stopAt {
				heard = append(heard, w.Stop()...)
			}
			parts, err := r.Read(raw)
			if err != nil {
				t.Fatal(err)
			}
			for p := range parts {
				if parts[p].Kind != agora.Reply || parts[p].Meta.Parent != "q" || parts[p].To.Agent != "al" {
					t.Fatalf("%+v is no reply", parts[p])
				}
				responses, err := w.Write(&parts[p])
				if err != nil {
					t.Fatal(err)
				}
				heard = append(heard, responses...)
			}
		}
		if w.Over() != (stopAt < len(said)) {
			t.Fatalf("over is %v, stopped at %d of %d", w.Over(), stopAt, len(said))
		}
		if heard = append(heard, w.Stop()...); !w.Over() {
			t.Fatal("the session has not ended")
		}
		for n, raw := range heard {
			e, err := ReadEnvelope(raw)
			if last := n == len(heard)-1; err != nil || (e.Status == AgentMessage_STOP_RESPONSE) != last || !last && e.Status != AgentMessage_HOLD_RESPONSE {
				t.Fatalf("response %d of %d is %v, %v", n, len(heard), e.Status, err)
			}
		}
		if !sameItems(withoutCuts(contentIn(t, heard...)), withoutCuts(contentIn(t, said...))) {
			t.Fatal("the content is another one")
		}
	})
}

func statuses(t testing.TB, all [][]byte) (names []string) {
	for _, raw := range all {
		names = append(names, decoded(t, raw).GetSessionStatus().String())
	}
	return names
}

func reply(p agora.Part, stream, body string) *agora.Message {
	m := &agora.Message{Kind: agora.Reply, Part: p, Stream: stream}
	if body != "" {
		m.Body = []byte(body)
	}
	return m
}

func TestStopResponseIsTheLastReplyOrTheEndOfItsStream(t *testing.T) {
	stop := (*agora.Message)(nil)
	const hold, last = "HOLD_RESPONSE", "STOP_RESPONSE"
	for name, c := range map[string]struct {
		said  []*agora.Message
		want  []string
		waits bool
	}{
		"a reply before STOP":                   {[]*agora.Message{reply(agora.Whole, "", "1"), stop}, []string{hold, last}, false},
		"a reply behind STOP":                   {[]*agora.Message{stop, reply(agora.Whole, "", "1")}, []string{last}, false},
		"replies on both sides":                 {[]*agora.Message{reply(agora.Whole, "", "1"), reply(agora.Whole, "", "2"), stop, reply(agora.Whole, "", "3")}, []string{hold, hold, last}, false},
		"no reply":                              {[]*agora.Message{stop}, nil, true},
		"a reply that says nothing before STOP": {[]*agora.Message{reply(agora.Whole, "", ""), stop}, []string{last}, false},
		"a stream that ends before STOP":        {[]*agora.Message{reply(agora.Start, "r", ""), reply(agora.Chunk, "r", `"a"`), reply(agora.End, "r", ""), stop}, []string{hold, last}, false},
		"one that ends behind it":               {[]*agora.Message{reply(agora.Start, "r", "0"), stop, reply(agora.Chunk, "r", `"a"`), reply(agora.End, "r", "1")}, []string{hold, hold, last}, false},
		"one that is open":                      {[]*agora.Message{reply(agora.Start, "r", ""), stop, reply(agora.Chunk, "r", `"a"`)}, []string{hold}, false},
		"two streams":                           {[]*agora.Message{reply(agora.Start, "r", ""), reply(agora.Start, "q", ""), stop, reply(agora.End, "r", "1"), reply(agora.End, "q", "2")}, []string{hold, last}, false},
	} {
		w := NewResponseWriter("bob", "al", "s", 0)
		var got []string
		for _, m := range c.said {
			if m == stop {
				got = append(got, statuses(t, w.Stop())...)
				continue
			}
			responses, err := w.Write(m)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, statuses(t, responses)...)
		}
		if !slices.Equal(got, c.want) || w.Waits() != c.waits {
			t.Errorf("%s: %v, waits %v, want %v, %v", name, got, w.Waits(), c.want, c.waits)
		}
	}
}

func TestASessionThatEndsBadlyIsToldByOneStopResponseIfItWasAnswered(t *testing.T) {
	w := NewResponseWriter("bob", "al", "s", 0)
	if got := w.Fail("gone"); got != nil || !w.Over() {
		t.Errorf("a session without an answer is told %v", got)
	}
	w = NewResponseWriter("bob", "al", "s", 0)
	if _, err := w.Write(reply(agora.Whole, "", "1")); err != nil {
		t.Fatal(err)
	}
	got := w.Fail("gone")
	if len(got) != 1 || decoded(t, got[0]).GetSessionStatus() != AgentMessage_STOP_RESPONSE || decoded(t, got[0]).GetContent()[0].GetText() != "gone" {
		t.Errorf("it is told by %v", got)
	}
	more, err := w.Write(reply(agora.Whole, "", "2"))
	if len(w.Fail("gone"))+len(w.End())+len(w.Stop())+len(more) != 0 || err != nil {
		t.Error("something follows STOP_RESPONSE")
	}
}

func TestWhatGivesAStreamUpIsAnErrorAndNoMessage(t *testing.T) {
	timeout := agora.AbortBody{Code: agora.Timeout}.Message()
	lost := agora.AbortBody{Code: agora.StreamAborted}.Message()
	for name, c := range map[string]struct {
		part agora.Message
		want agora.Code
	}{
		"cancel": {agora.Message{Part: agora.Cancel}, agora.StreamAborted}, "abort": {lost, agora.StreamAborted}, "deadline": {timeout, agora.Timeout}, "an abort of none": {agora.Message{Part: agora.Abort}, agora.StreamAborted},
	} {
		start := agora.Message{Part: agora.Start, From: "al", Stream: "s"}
		w := NewQuestWriter(&start, "bob", "", 0)
		_, err := w.Write(&start)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.Write(&c.part); got != nil || !isCode(err, c.want) {
			t.Errorf("%s of a quest: %v, %v, want %s", name, got, err, c.want)
		}
		if got, err := w.Write(&agora.Message{Part: agora.End}); got != nil || !isCode(err, agora.StreamAborted) {
			t.Errorf("an end behind a %s: %v, %v", name, got, err)
		}
		r := NewResponseWriter("bob", "al", "s", 0)
		if _, err := r.Write(reply(agora.Start, "", "1")); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Write(&c.part); got != nil || !isCode(err, c.want) {
			t.Errorf("%s of a reply: %v, %v, want %s", name, got, err, c.want)
		}
	}
}

func TestPartsWithoutABeginningAreRefused(t *testing.T) {
	for _, part := range []agora.Part{agora.Chunk, agora.End} {
		m := agora.Message{Part: part, From: "al", Stream: "s"}
		if got, err := NewQuestWriter(&m, "bob", "", 0).Write(&m); got != nil || !isCode(err, agora.StreamAborted) {
			t.Errorf("a quest: %v, %v", got, err)
		}
		if got, err := NewResponseWriter("bob", "al", "s", 0).Write(&m); got != nil || !isCode(err, agora.StreamAborted) {
			t.Errorf("a reply: %v, %v", got, err)
		}
	}
}

func TestResponsesThatDoNotFitAreTheNodesFault(t *testing.T) {
	for name, said := range map[string][][]byte{
		"a quest": {quest(AgentMessage_START_QUEST)}, "an unknown status": {quest(9)}, "no message": {[]byte("\x0a")},
		"one behind the last": {quest(AgentMessage_STOP_RESPONSE), quest(AgentMessage_HOLD_RESPONSE)},
	} {
		r := ResponseReader{To: "al", Request: "q"}
		for n, raw := range said {
			if _, err := r.Read(raw); n == len(said)-1 && !isCode(err, agora.StreamAborted) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestACallThatFailsOrEndsIsToldOnce(t *testing.T) {
	r := ResponseReader{To: "al", Request: "q"}
	if m, ok := r.Fail(agora.Unavailable); !ok || m.Part != agora.Abort || m.Stream != "" || m.AbortBody() != (agora.AbortBody{Code: agora.Unavailable, Request: "q"}) {
		t.Errorf("a call without an answer is told by %+v", m)
	}
	if _, ok := r.Fail(agora.Unavailable); ok || r.End() != nil {
		t.Error("it is told twice")
	}
	r = ResponseReader{To: "al", Request: "q"}
	if _, err := r.Read(quest(AgentMessage_HOLD_RESPONSE, text("a"))); err != nil {
		t.Fatal(err)
	}
	if m, ok := r.Fail(agora.Unavailable); !ok || m.Stream != "q" {
		t.Errorf("a streamed answer is told by %+v", m)
	}
	r = ResponseReader{To: "al", Request: "q"}
	if all := r.End(); len(all) != 1 || all[0].Part != agora.Whole || all[0].Body != nil {
		t.Errorf("a call that ends without a response is %+v", all)
	}
}

func TestSessionsOfOneNodeDiffer(t *testing.T) {
	seen := map[string]string{}
	for what, id := range map[string]string{
		"a stream": SessionID(&agora.Message{From: "al", Stream: "s"}, ""), "that of another": SessionID(&agora.Message{From: "bo", Stream: "s"}, ""),
		"a request": SessionID(&agora.Message{From: "al", ID: "q\x00key"}, ""), "a named one": SessionID(&agora.Message{From: "al", ID: "x"}, "n"),
		"mail": SessionID(&agora.Message{From: "al", Seq: 7}, ""), "a slash": SessionID(&agora.Message{From: "al/s", Stream: "s"}, ""), "another slash": SessionID(&agora.Message{From: "al", Stream: "s/s"}, ""),
	} {
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s are both %q", what, other, id)
		}
		seen[id] = what
	}
	if _, ok := seen["al/q"]; !ok {
		t.Errorf("the sessions are %v", seen)
	}
}
