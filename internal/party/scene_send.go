package party

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agora-relay/agora"
)

// sendScenes are whole messages.
var sendScenes = []scenario{
	{"a payload keeps its value", Sends, Sends, payloadValues},
	{"a payload keeps its bytes", Sends | Exact, Sends | Exact, payloadBytes},
	{"a message may say nothing", Sends | Anything, Sends | Anything, sayNothing},
	{"a large payload passes whole", Sends, Sends, largePayload},
	{"many messages arrive in order, each once", Sends, Sends, manyMessages},
	{"a message to an agent that nobody knows is refused, and the sender goes on", Sends, Sends, sendToNobody},
	{"a reply to an agent that nobody knows is refused", Answers | Mails, 0, replyToNobody},
	{"what is too large is refused, and the sender goes on", Sends | Bounded, Sends, tooLarge},
	{"who reads nothing costs nobody else anything, and gets everything later", Streams, Enters | Sends | Streams | Stalls, slowReader},
}

// oddPayloads are objects, and what else JSON has.
var oddPayloads = []string{
	`{}`, "{ \"b\" :\t1 ,\n\"a\": [ 1,2 ] }", `{"n":[-0,1.0,1.50e+02,123456789012345678901234567890]}`, `{"\u0061":"\/","é":"\u00e9é\ud83d\ude00😀"}`,
	`{"html":"<a href='x'>&","line":"\u2028\u2029\r\n\u0000"}`, `{"type":"x","to":"y","from":"z","seq":7}`, `{"request_id":17}`, `{"a":{"a":{"a":[[[{}]]]}}}`,
	`null`, `true`, `""`, `"x"`, `[]`, `0`, `"\u00e9é"`, `1.50e+02`, `"<a href='x'>&"`, "\"\u2028\u2029\"",
}

// oddBytes are payloads of which other programs would make something else.
var oddBytes = []string{
	`{"a":1,"a":2}`, `{"n":1E400}`, `{"half":"\ud83d","\uDE00":["\udc00\\ud83d"]}`, `{"request_id":"\ud83d"}`, `-0`, `1E400`, `123456789012345678901234567890`, `"\ud83d"`, `"\ude00\ud83d"`,
}

// pass has payloads be sent one after the other, as far as the pair can, and be compared.
func (s *scene) pass(payloads []string, same func(got, want []byte) bool) {
	s.Helper()
	anna, bob := s.pair()
	for _, p := range payloads {
		if p[0] != '{' && s.Sender.Can&s.Receiver.Can&Anything == 0 {
			continue
		}
		anna.says(Word{Peer: "bob", Body: []byte(p)})
		w := bob.whole()
		bob.letsGo(w)
		if w.Kind != agora.Request || w.Part != agora.Whole || w.Peer != "anna" || !same(w.Body, []byte(p)) {
			s.Errorf("payload %s came as %s", p, w)
		}
	}
	anna.silent(bob)
}

func payloadValues(s *scene) { s.pass(oddPayloads, sameValue) }

func payloadBytes(s *scene) { s.pass(slices.Concat(oddPayloads, oddBytes), bytes.Equal) }

// sameValue reports whether two texts are the same JSON value, numbers compared as they are spelt.
func sameValue(a, b []byte) bool {
	var v [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}

func sayNothing(s *scene) {
	anna, bob := s.pair()
	anna.says(Word{Peer: "bob"})
	w := bob.hears(Word{Peer: "anna"})
	if bob.letsGo(w); len(w.Body) > 0 && string(w.Body) != "null" {
		s.Errorf("nothing came as %s", w)
	}
	anna.silent(bob)
}

func largePayload(s *scene) {
	anna, bob := s.pair()
	for _, size := range []int{60_000, 65_536, 200_000, 1_000_000} {
		said := strings.Repeat(fmt.Sprint(size), size)[:size]
		anna.sends("bob", said)
		w := bob.whole()
		if bob.letsGo(w); w.said() != said {
			s.Errorf("a text of %d bytes came as %d others", size, len(w.said()))
		}
	}
	anna.silent(bob)
}

func manyMessages(s *scene) {
	anna, bob := s.pair()
	texts := make([]string, 60)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	var speaking sync.WaitGroup
	speaking.Go(func() {
		for _, text := range texts {
			if err := anna.Say(s.context(), plain("bob", text)); err != nil {
				s.Errorf("message %s: %v", text, err)
			}
		}
	})
	bob.getsAll("anna", texts...)
	speaking.Wait()
	anna.silent(bob)
}

func sendToNobody(s *scene) {
	anna, bob := s.pair()
	anna.refused(plain("nobody", "hello"), agora.AgentNotFound)
	if s.Sender.Can&Streams != 0 {
		anna.refused(Word{Part: agora.Start, Peer: "nobody", Stream: "s", Body: text("hello")}, agora.AgentNotFound)
	}
	anna.silent(bob)
}

func replyToNobody(s *scene) {
	anna := s.enters(s.Sender, 0, "anna")
	anna.refused(Word{Kind: agora.Reply, Peer: "nobody", Request: "r-1", Body: text("hi")}, agora.AgentNotFound)
}

func tooLarge(s *scene) {
	anna, bob := s.pair()
	anna.refused(plain("bob", strings.Repeat("x", s.Sender.TooMuch)), agora.MessageTooLarge)
	anna.silent(bob)
}

func slowReader(s *scene) {
	anna, bob := s.pair()
	carl, dora := s.enters(s.Receiver, 2, "carl"), s.enters(s.Receiver, 1, "dora") // she is at the edge of the slow one
	f := anna.opens(bob, "s")
	bob.Stall(true)
	const parts = 30
	said := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("x", 40_000)) }
	var speaking sync.WaitGroup
	speaking.Go(func() {
		for i := range parts {
			if err := anna.Say(s.context(), f.word(agora.Chunk, said(i))); err != nil {
				s.Errorf("chunk %d: %v", i, err)
			}
		}
	})
	for i := range 20 {
		carl.sends("dora", fmt.Sprint(i))
		dora.gets("carl", fmt.Sprint(i))
	}
	bob.Stall(false)
	for i := range parts {
		f.hears(agora.Chunk, said(i))
	}
	speaking.Wait()
	f.ends()
}
