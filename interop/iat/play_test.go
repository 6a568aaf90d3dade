//go:build interop

package iat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// play has two agents speak by a tool: al at one edge, bob at another.
type play struct {
	*testing.T
	tool               tool
	near, far, al, bob string
	down               *answer // bob's downlink
}

const media = "text/event-stream"

func (p *play) log(id string) string {
	return fmt.Sprintf(`{"header":{"msg_id":%q,"type":"notification","from":%q,"to":%q},"payload":{"action":"log","level":"info","message":"hello é"}}`, id, p.al, p.bob)
}

// same says whether an envelope is what was said, whatever the edge has added to metadata.
func (p *play) same(got, want string) {
	p.Helper()
	var g, w map[string]any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		p.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		p.Fatal(err)
	}
	if delete(g, "metadata"); !reflect.DeepEqual(g, w) {
		p.Fatalf("got %s, want %s", got, want)
	}
}

// answered waits for the head of an answer.
func (p *play) answered(a *answer, status, media string) {
	p.Helper()
	await.Recv(p, "the head of an answer", a.head)
	if a.status != status || a.fields["content-type"] != media {
		p.Fatalf("answered by %q %q, want %q %q", a.status, a.fields["content-type"], status, media)
	}
}

// next returns the next event of an answer.
func (p *play) next(a *answer) event {
	p.Helper()
	e := await.Recv(p, "an event", a.events)
	if e == (event{}) {
		p.Fatal("the answer has ended")
	}
	return e
}

// heard takes bob's next event, which is to be an envelope behind a position, and returns its own.
func (p *play) heard(want string, behind int) int {
	p.Helper()
	e := p.next(p.down)
	p.same(e.data, want)
	id, err := strconv.Atoi(e.id)
	if err != nil || id <= behind {
		p.Fatalf("the event's id is %q, want a number beyond %d", e.id, behind)
	}
	return id
}

func (p *play) posts(edge, envelope string) {
	p.Helper()
	a := p.tool.start(p.T, edge+"/a2a", envelope)
	p.answered(a, "202", "")
	a.stop()
}

func (p *play) notifies() (last int, token string) {
	p.Helper()
	p.down = p.tool.start(p.T, p.far+"/a2a/events?agent="+p.bob, "", "accept: "+media)
	p.answered(p.down, "200", media)
	p.posts(p.near, p.log("n1"))
	return p.heard(p.log("n1"), 0), p.down.fields["agora-resume-token"]
}

func (p *play) asks(last int) int {
	p.Helper()
	task := fmt.Sprintf(`{"header":{"msg_id":"r1","type":"request","from":%q,"to":%q},"payload":{"action":"execute","query":"count"}}`, p.al, p.bob)
	asked := p.tool.start(p.T, p.near+"/a2a", task, "accept: "+media)
	last = p.heard(task, last)
	var said []string
	for i, w := range [][2]string{{"chunk", `{"text":"one "}`}, {"chunk", `{"text":"two"}`}, {"response", `{"status":"success"}`}} {
		said = append(said, fmt.Sprintf(`{"header":{"msg_id":"c%d","parent_id":"r1","type":%q,"from":%q,"to":%q},"payload":%s}`, i, w[0], p.bob, p.al, w[1]))
		p.posts(p.far, said[i])
	}
	p.answered(asked, "200", media)
	for _, want := range said {
		p.same(p.next(asked).data, want)
	}
	if e := await.Recv(p, "the end of the answer", asked.events); e != (event{}) {
		p.Fatalf("%v comes after the response", e)
	}
	return last
}

func (p *play) resumes(last int, token string) {
	p.Helper()
	p.down.stop()
	for _, id := range []string{"n2", "n3"} {
		p.posts(p.far, p.log(id))
	}
	p.down = p.tool.start(p.T, p.near+"/a2a/events?agent="+p.bob+"&resume_token="+token, "", "accept: "+media, fmt.Sprint("last-event-id: ", last))
	p.answered(p.down, "200", media)
	last = p.heard(p.log("n2"), last)
	p.heard(p.log("n3"), last)
}

func (p *play) isRefused() {
	p.Helper()
	bad := fmt.Sprintf(`{"header":{"msg_id":"x1","type":"nonsense","from":%q,"to":%q},"payload":{}}`, p.al, p.bob)
	a := p.tool.start(p.T, p.near+"/a2a", bad)
	p.answered(a, "400", "application/json")
	var got struct {
		Header struct {
			Parent         string `json:"parent_id"`
			Type, From, To string
		}
		Payload struct{ Error struct{ Code, Path string } }
	}
	if err := json.Unmarshal([]byte(p.next(a).data), &got); err != nil {
		p.Fatal(err)
	}
	want := got
	want.Header.Parent, want.Header.Type, want.Header.From, want.Header.To = "x1", "response", "agora", p.al
	want.Payload.Error.Code, want.Payload.Error.Path = "INVALID_REQUEST", "/header/type"
	if got != want {
		p.Errorf("got %+v, want %+v", got, want)
	}
}
