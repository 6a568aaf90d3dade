package iat_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// odd makes envelopes that are odd somewhere, one place in so many.
type odd struct {
	*rand.Rand
	seldom int
}

func newOdd(series, n int) odd {
	r := rand.New(rand.NewPCG(uint64(series), uint64(n)))
	return odd{r, []int{8, 30, 100, 400}[r.IntN(4)]}
}

// oddValues may stand anywhere.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `-1`, `1`, `3`, `1.5`, `1e2`, `1e400`, `-1e-999999999`, `9007199254740993`, `99999999999999999999`, `01`, `.5`, `NaN`,
	`""`, `"a"`, `"al"`, `"bob"`, `"agora"`, `"nobody"`, `"\u0000"`, `"\u0007"`, `"\ud83d"`, `"\ud83d\ude00"`, `"\udc00x"`, `"\x"`, `"` + "\xff" + `"`, `"` + "\t" + `"`,
	`"request"`, `"response"`, `"notification"`, `"chunk"`, `"call_tool"`, `"register"`, `"require_approval"`, `"execute"`, `"cancel"`, `"stream_end"`, `"ack"`, `"sum"`, `"open"`,
	`"/etc/passwd"`, `"../../x"`, `"/work/bob/x"`, `"bearer x"`, `[]`, `{}`, `[[]]`, `{"a":{}}`, `[1,"2",null]`, `{"type":"nothing"}`, `{"$ref":"#"}`, `{"pattern":"("}`,
	`["stored","acked"]`, `{"of":[1]}`, `{"of":[1e999]}`, `{"path":["/work/bob",7]}`, `[{"name":"x","input_schema":{"minimum":0}}]`, `"<any>"`, ``, `{`, `]`, `"`,
}

// value returns an odd value, now and then a large or a deep one.
func (o odd) value() string {
	switch o.IntN(40) {
	case 0:
		return `"` + strings.Repeat("x", 1+o.IntN(2000)) + `"`
	case 1:
		n := 1 + o.IntN(80)
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	case 2:
		return fmt.Sprint(o.Int64())
	}
	return oddValues[o.IntN(len(oddValues))]
}

// pick returns one of some, or an odd value.
func (o odd) pick(some ...string) string {
	if o.IntN(o.seldom) == 0 {
		return o.value()
	}
	return some[o.IntN(len(some))]
}

// object returns an object of keys and values: most of them, in any order, now and then one twice.
func (o odd) object(members map[string]string) string {
	var all []string
	for key, value := range members { // in any order
		if o.IntN(o.seldom) == 0 {
			continue
		}
		if o.IntN(o.seldom) == 0 {
			key = o.escaped(key)
		}
		all = append(all, `"`+key+`":`+value)
		if o.IntN(2*o.seldom) == 0 {
			all = append(all, `"`+key+`":`+o.value())
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// escaped spells a key with an escape, or half of one.
func (o odd) escaped(key string) string {
	if o.IntN(2) == 0 {
		return fmt.Sprintf(`\u%04x`, key[0]) + key[1:]
	}
	return key + `\ud800`
}

func (o odd) payload() string {
	return o.pick(
		`{}`, `null`, `{"text":"x"}`,
		o.object(map[string]string{"action": o.pick(`"execute"`), "query": o.pick(`"q"`), "allowed_tools": o.pick(`[]`, `["sum"]`), "context_fragments": o.pick(`[]`)}),
		o.object(map[string]string{"action": o.pick(`"call_tool"`), "tool_name": o.pick(`"sum"`, `"open"`), "arguments": o.pick(`{"of":[1]}`, `{"path":"/work/bob/x"}`)}),
		o.object(map[string]string{"action": o.pick(`"register"`), "agent": o.pick(`"al"`, `{"id":"al"}`), "tools": o.pick(`[{"name":"t"}]`), "workspace_root": o.pick(`"/w"`)}),
		o.object(map[string]string{"action": o.pick(`"require_approval"`), "what": o.pick(`"rm"`)}),
		o.object(map[string]string{"action": o.pick(`"log"`, `"think"`, `"done"`, `"ack"`, `"cancel"`, `"stream_end"`), "level": o.pick(`"info"`), "message": o.pick(`"m"`), "seq": o.pick(`1`)}),
		o.object(map[string]string{"approved": o.pick(`true`, `false`), "note": o.pick(`"n"`)}),
	)
}

// envelope returns an envelope that is odd, by whom and to whom it may be.
func (o odd) envelope(n int) string {
	header := o.object(map[string]string{
		"msg_id": o.pick(fmt.Sprintf(`"m-%d"`, n)), "type": o.pick(`"request"`, `"response"`, `"notification"`, `"chunk"`), "from": o.pick(`"al"`), "to": o.pick(`"bob"`, `"wes"`, `"ida"`, `"agora"`),
		"parent_id": o.pick(fmt.Sprintf(`"m-%d"`, max(0, n-1-o.IntN(4)))), "timestamp": o.pick(`1`),
	})
	metadata := o.object(map[string]string{
		"trace_id": o.pick(`"t"`, `"4bf92f3577b34da6a3ce929d0e0e4736"`), "ttl": o.pick(`3`), "deadline_ms": o.pick(`20`), "stream": o.pick(`false`, `false`, `true`), "receipts": o.pick(`["stored"]`),
		"auth_token": o.pick(`"bearer t/x"`), "workspace_root": o.pick(`"/x"`), "redelivered": o.pick(`true`),
	})
	text := o.object(map[string]string{"header": o.pick(header), "metadata": o.pick(metadata), "payload": o.payload(), "more": o.pick(`{"a":1}`)})
	if o.IntN(4*o.seldom) == 0 {
		return text[:o.IntN(len(text))]
	}
	if o.IntN(4*o.seldom) == 0 {
		at := o.IntN(len(text))
		return text[:at] + string([]byte{byte(o.IntN(256))}) + text[at+1:]
	}
	return text
}

// rounds returns how many are tried.
func rounds(many, short int) int {
	if testing.Short() {
		return short
	}
	return many
}

// oddSite is where odd envelopes are said; what it waits for, it waits for briefly.
func oddSite(t *testing.T) *site {
	s := open(t, setup{
		Options: agoratest.Options{Edges: 2, Node: edge.Config{Patience: 20 * time.Millisecond}}, door: iat.Config{MaxErrors: 1 << 20, MaxWait: 50 * time.Millisecond},
	})
	populate(t, s, "")
	return s
}

func TestOddEnvelopesThatArePostedAreAnswered(t *testing.T) {
	t.Parallel()
	s := oddSite(t)
	al := s.downlink(t, 1, "al")
	var work sync.WaitGroup
	next, many := make(chan int), rounds(1000, 150)
	for range 8 {
		work.Go(func() {
			for n := range next {
				s.isAnswered(t, n)
			}
		})
	}
	for n := range many {
		next <- n
	}
	close(next)
	work.Wait()
	s.isHealthy(t)
	for sound := true; sound; {
		e, _ := al.next()
		if sound = fieldOf(e.data, "header", "msg_id") != "healthy"; sound && !json.Valid([]byte(e.data)) {
			t.Errorf("al is sent %q", e.data)
		}
	}
}

// isAnswered POSTs an odd envelope, and wants an answer that one may have.
func (s *site) isAnswered(t *testing.T, n int) {
	o := newOdd(18, n)
	c := call{client: s.one, method: http.MethodPost, path: "/a2a", body: o.envelope(n), edge: o.IntN(2)}
	if o.IntN(2) == 0 {
		c.client = s.two
	}
	if o.IntN(3) == 0 {
		c = c.events()
	}
	a := s.asks(await.Context(t), c)
	text := a.body
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		last := strings.LastIndex(text, "data: ")
		text = text[max(0, last):]
		text = strings.TrimSuffix(strings.TrimPrefix(text, "data: "), "\n\n")
	}
	switch {
	case a.err != nil:
		t.Errorf("%d: %s is not answered: %v", n, c.body, a.err)
	case a.status >= 500 && a.status != http.StatusServiceUnavailable && a.status != http.StatusGatewayTimeout && a.status != http.StatusBadGateway:
		t.Errorf("%d: %s is answered %d %s", n, c.body, a.status, a.body)
	case a.status == http.StatusAccepted && a.body == "":
	case a.status >= 400:
		isError(t, n, c.body, text, a.status)
	case fieldOf(text, "header", "type") != "response":
		t.Errorf("%d: %s is answered %d %s", n, c.body, a.status, a.body)
	}
}

// hidden is what is said of an error that nobody has thought of.
const hidden = "the cluster can't do this now"

// isError wants the envelope of an error, whose code has a status.
func isError(t *testing.T, n int, said, text string, status int) {
	code := agora.Code(fieldOf(text, "payload", "error", "code"))
	if fieldOf(text, "header", "type") != "response" || fieldOf(text, "header", "from") != "agora" || fieldOf(text, "header", "msg_id") == "" ||
		fieldOf(text, "payload", "error", "message") == "" || strings.Contains(text, hidden) || code.Status().HTTP != status {
		t.Errorf("%d: %s is answered %d %s", n, said, status, text)
	}
}

// isHealthy wants both edges to take and to hand on what is said, by POST and at a socket.
func (s *site) isHealthy(t *testing.T) {
	t.Helper()
	for k := range 2 {
		eve := s.socket(t, k, fmt.Sprint("eve-", k))
		s.ask(t, post(1-k, said{id: "well?", kind: "notification", from: "dan", to: fmt.Sprint("eve-", k)}.String())).is(t, 202, "")
		eve.Expect(fmt.Sprintf(`{"header":{"msg_id":"well?","type":"notification","from":"dan","to":"eve-%d"}}`, k))
		if k == 1 {
			eve.Send(said{id: "healthy", kind: "notification", from: "eve-1", to: "al"}.String())
		}
		goesOn(eve)
	}
}

func TestOddEnvelopesAtASocketAreAnsweredAndItStays(t *testing.T) {
	t.Parallel()
	s := oddSite(t)
	al := s.socket(t, 0, "al")
	for n := range rounds(1000, 150) {
		o := newOdd(19, n)
		text := o.envelope(n)
		if o.IntN(20) == 0 {
			al.SendBinary([]byte(text))
		} else {
			al.Send(text)
		}
		mark := fmt.Sprintf("mark-%d", n)
		al.Send(said{id: mark, kind: "request", from: "al", to: "agora", payload: `{"action":"register"}`}.String())
		for {
			f := string(al.Take("an answer to " + text))
			if fieldOf(f, "header", "parent_id") == mark {
				break
			}
			if fieldOf(f, "header", "type") == "" || strings.Contains(f, hidden) || strings.Contains(f, `"error":`) && agora.Code(fieldOf(f, "payload", "error", "code")).Status().HTTP == 500 {
				t.Errorf("%d: %s is answered %s", n, text, f)
			}
		}
	}
	s.isHealthy(t)
}
