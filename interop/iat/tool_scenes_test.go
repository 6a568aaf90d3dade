//go:build interop

package iat

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// toolScenes are what each tool plays, with agents at different edges.
var toolScenes = map[string]func(*testing.T, tool, []string){
	"register": registers, "notify": notifies, "ask": asksForEvents, "tools": callsTools, "approval": asksForApproval, "resume": resumes, "errors": refuses,
}

func (c tool) playsAll(t *testing.T, edges []string) {
	t.Helper()
	for name, scene := range toolScenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, c, edges)
		})
	}
}

// wants wants an answer's status, and returns its last envelope; none where there is no body.
func wants(t *testing.T, a answer, status int) (e envelope) {
	t.Helper()
	if a.status != status {
		t.Errorf("status is %d, want %d:\n%s", a.status, status, a.said)
	}
	if len(a.parts) > 0 {
		return a.parts[len(a.parts)-1]
	}
	if status != 202 {
		t.Errorf("the answer has no envelope:\n%s", a.said)
	}
	return e
}

// refusal is an error as an edge answers it. path is empty where it is about no place.
type refusal struct {
	status     int
	code, path string
}

// isIn wants an answer to be this refusal, by the cluster.
func (r refusal) isIn(t *testing.T, a answer) {
	t.Helper()
	e := wants(t, a, r.status)
	if e.Payload.Error.Code != r.code || e.Payload.Error.Path != r.path || e.Header.Type != "response" || e.Header.From != "agora" {
		t.Errorf("the answer is\n%s\nwant a response of agora with the error %s at %q", e.raw, r.code, r.path)
	}
}

const adds = `{"action":"register","tools":[{"name":"add","input_schema":{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}}]}`

func registers(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	e := wants(t, c.posts(t, edges[0], says(bob, "agora", `"msg_id":"1","type":"request"`, adds)), 200)
	if e.Payload.Status != "registered" || e.Header.Parent_id != "1" {
		t.Errorf("the answer is %s", e.raw)
	}
	await.True(t, "another edge finds the tool", func() bool {
		a := c.asks(t, request{url: edges[1] + "/a2a/tools?name=add&agent=" + bob})
		return strings.Contains(a.said, `"name":"add"`)
	})
}

func notifies(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	d := c.hears(t, edges[0], bob, "")
	const payload = `{ "action":"log","level":"info", "message":"ü\u00fc", "n":1.0e2 }`
	for range 2 { // the one who does not know that it was stored says it again
		wants(t, c.posts(t, edges[1], says("al", bob, `"msg_id":"1-`+bob+`","type":"notification"`, payload)), 202)
	}
	wants(t, c.posts(t, edges[2], says("al", bob, `"msg_id":"2-`+bob+`","type":"notification"`, `{"text":"last"}`)), 202)
	if e := d.next(t); !strings.Contains(e.raw, `"metadata":{"ttl":2},"payload":`+payload) {
		t.Errorf("what arrives is %s", e.raw)
	}
	if e := d.next(t); e.Payload.Text != "last" {
		t.Errorf("what arrives behind it is %s", e.raw)
	}
}

// answers has an agent answer the next request with chunks, POSTed to an edge.
func (c tool) answers(t *testing.T, d *downlink, edge string) {
	t.Helper()
	r := d.next(t)
	of := fmt.Sprintf(`"parent_id":%q`, r.Header.Msg_id)
	for k := range 3 {
		header := fmt.Sprintf(`%s,"msg_id":"c-%d-%s","type":"chunk"`, of, k, r.Header.Msg_id)
		wants(t, c.posts(t, edge, says(r.Header.To, r.Header.From, header, fmt.Sprintf(`{"text":"piece %d"}`, k))), 202)
	}
	wants(t, c.posts(t, edge, says(r.Header.To, r.Header.From, of+`,"msg_id":"r","type":"response"`, `{"text":"done"}`)), 202)
}

func asksForEvents(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	d := c.hears(t, edges[0], bob, "")
	var asking sync.WaitGroup
	var a answer
	asking.Go(func() {
		body := says("al-"+bob, bob, `"msg_id":"1","type":"request"`, `{"action":"execute","query":"tidy"}`)
		a = c.asks(t, request{url: edges[2] + "/a2a", post: true, body: body, events: true})
	})
	c.answers(t, d, edges[1])
	asking.Wait()
	var texts []string
	for _, e := range a.parts {
		texts = append(texts, e.Header.Type+" "+e.Payload.Text)
		if e.Header.Parent_id != "1" || e.Header.From != bob {
			t.Errorf("a part of the answer is %s", e.raw)
		}
	}
	if got, want := strings.Join(texts, ", "), "chunk piece 0, chunk piece 1, chunk piece 2, response done"; a.status != 200 || got != want {
		t.Errorf("the answer has status %d and %q, want %q", a.status, got, want)
	}
}

func callsTools(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	d := c.hears(t, edges[0], bob, "")
	wants(t, c.posts(t, edges[1], says(bob, "agora", `"msg_id":"1","type":"request"`, adds)), 200)
	call := func(id, tool, arguments string) string {
		return says("al-"+bob, bob, fmt.Sprintf(`"msg_id":%q,"type":"request"`, id), fmt.Sprintf(`{"action":"call_tool","tool_name":%q,"arguments":%s}`, tool, arguments))
	}
	refusal{400, "INVALID_REQUEST", "/payload/arguments/a"}.isIn(t, c.posts(t, edges[2], call("1", "add", `{"a":"one"}`)))
	refusal{404, "NOT_FOUND", ""}.isIn(t, c.posts(t, edges[2], call("2", "erase", `{}`)))
	var asking sync.WaitGroup
	asking.Go(func() {
		if e := wants(t, c.posts(t, edges[2], call("3", "add", `{"a":1}`)), 200); e.Payload.Sum != 2 {
			t.Errorf("the answer is %s", e.raw)
		}
	})
	wants(t, c.posts(t, edges[1], says(bob, d.next(t).Header.From, `"msg_id":"2","parent_id":"3","type":"response"`, `{"sum":2}`)), 202)
	asking.Wait()
}

func asksForApproval(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	wants(t, c.posts(t, edges[2], says("boss-"+bob, "agora", `"msg_id":"1","type":"request"`, adds)), 200)
	var asking sync.WaitGroup
	asking.Go(func() {
		e := wants(t, c.posts(t, edges[0], says(bob, "boss-"+bob, fmt.Sprintf(`"msg_id":"ask-%s","type":"request"`, bob), `{"action":"require_approval"}`)), 200)
		if e.Payload.Approved == nil || !*e.Payload.Approved {
			t.Errorf("the answer is %s", e.raw)
		}
	})
	await.True(t, "the approval is listed", func() bool {
		return strings.Contains(c.asks(t, request{url: edges[1] + "/a2a/approvals?state=pending&agent=" + bob}).said, `"id":"ask-`)
	})
	decide := func(as, body string) answer {
		return c.asks(t, request{url: fmt.Sprintf("%s/a2a/approvals/ask-%s?as=%s", edges[1], bob, as), post: true, body: body})
	}
	refusal{403, "FORBIDDEN", ""}.isIn(t, decide(bob, `{"approved":true}`))
	refusal{400, "INVALID_REQUEST", "/approved"}.isIn(t, decide("boss-"+bob, `{}`))
	if a := decide("boss-"+bob, `{"approved":true}`); a.status != 200 || !strings.Contains(a.said, `"state":"approved"`) {
		t.Errorf("the decision is answered by %s", a.said)
	}
	refusal{409, "INVALID_REQUEST", ""}.isIn(t, decide("boss-"+bob, `{"approved":false}`))
	asking.Wait()
}

func resumes(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	say := func(texts ...string) {
		for _, text := range texts {
			wants(t, c.posts(t, edges[1], says("al", bob, fmt.Sprintf(`"msg_id":"%s-%s","type":"notification"`, text, bob), fmt.Sprintf(`{"text":%q}`, text))), 202)
		}
	}
	d := c.hears(t, edges[0], bob, "")
	say("1", "2", "3")
	d.next(t)
	had := d.next(t)
	d.end()
	say("4", "5")
	d = c.hears(t, edges[2], bob, had.id)
	say("6")
	for _, want := range []string{"3", "4", "5", "6"} {
		if e := d.next(t); e.Payload.Text != want {
			t.Errorf("what arrives is %s, want %s", e.raw, want)
		}
	}
}

func refuses(t *testing.T, c tool, edges []string) {
	bob := "bob-" + tagOf(t)
	wants(t, c.posts(t, edges[0], says(bob, "agora", `"msg_id":"1","type":"request"`, adds)), 200)
	for body, want := range map[string]refusal{
		``:                                   {400, "INVALID_REQUEST", ""},
		`{"header":`:                         {400, "INVALID_REQUEST", ""},
		"{\"header\":{\"msg_id\":\"\xff\"}}": {400, "INVALID_REQUEST", ""},
		says("al", bob, `"type":"notification"`, `{}`):                                            {400, "INVALID_REQUEST", "/header/msg_id"},
		says("al", bob, `"type":"shout","msg_id":"1"`, `{}`):                                      {400, "INVALID_REQUEST", "/header/type"},
		says("al", bob, `"type":"notification","msg_id":"1"`, `{"action":"log"}`):                 {400, "INVALID_REQUEST", "/payload/level"},
		says("al", "nobody-"+bob, `"type":"notification","msg_id":"1"`, `{}`):                     {404, "AGENT_NOT_FOUND", ""},
		says("al", bob, `"type":"notification","msg_id":"1"`, `"`+strings.Repeat("x", 1<<20)+`"`): {413, "MESSAGE_TOO_LARGE", ""},
	} {
		want.isIn(t, c.posts(t, edges[1], body))
	}
	for path, status := range map[string]int{
		"/a2a": 405, "/a2a/nothing": 404, "/a2a/events": 400, "/a2a/events?agent=x&last_seq=x": 400, "/a2a/approvals/nobody-asked": 404, "/a2a/ws?agent=x": 426,
	} {
		if e := wants(t, c.asks(t, request{url: edges[2] + path}), status); e.Payload.Error.Code == "" {
			t.Errorf("GET %s is answered by %s", path, e.raw)
		}
	}
	c.hears(t, edges[0], bob, "")
	refusal{409, "AGENT_EXISTS", ""}.isIn(t, c.asks(t, request{url: edges[2] + "/a2a/events?agent=" + bob}))
}
