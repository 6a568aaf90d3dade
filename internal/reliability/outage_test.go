//go:build chaos

package reliability

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// outage is agents at one edge, which say things while all of the log is away.
type outage struct {
	*agoratest.Processes
	t          testing.TB
	begin      time.Time
	alice, bob *agoratest.Client // a sender without numbers, and the receiver of all
	numbers    *agoratest.Client // a sender with numbers
	flood      *agoratest.Client // one that says more than gathers
	many       *agoratest.Client // one that writes to many
	joiner     *agoratest.Client
	heard      map[*agoratest.Client][]noted
}

// noted is a frame and when it came.
type noted struct {
	agoratest.Frame
	after time.Duration
}

const (
	lanes  = 100 // that have something in hand: more than may ask the log at a time
	pieces = 40  // of 64 KiB, more than gathers
)

// TestWhoSaysSomethingWhileAllOfNATSIsDownIsAnswered kills every NATS node for longer than anything gathers.
func TestWhoSaysSomethingWhileAllOfNATSIsDownIsAnswered(t *testing.T) {
	const down = 40 * time.Second
	o := newOutage(t)
	for k := range o.NATS.Nodes {
		o.NATS.Kill(k)
	}
	o.begin = time.Now()
	o.say()
	o.listen(down)
	for k := range o.NATS.Nodes {
		o.NATS.Start(k)
	}
	o.NATS.Ready()
	o.Edges[0].Ready()
	o.listen(time.Since(o.begin) + 5*time.Second)
	o.judgeAnswers(down)
	o.judgeTimes()
	o.judgeBob()
}

func newOutage(t testing.TB) *outage {
	o := &outage{Processes: start(t, agoratest.ProcessOptions{Lease: lease}), t: t, heard: map[*agoratest.Client][]noted{}}
	for id, c := range map[string]**agoratest.Client{
		"alice": &o.alice, "bob": &o.bob, "numbers": &o.numbers, "flood": &o.flood, "many": &o.many, "joiner": &o.joiner,
	} {
		*c = o.agent(id)
	}
	for _, c := range []*agoratest.Client{o.alice, o.bob} {
		c.Send(`{"type":"space.join","id":"j","space":"room"}`)
		c.Await(`{"type":"space.joined"}`)
	}
	for i := range lanes {
		o.agent(fmt.Sprint("r", i))
		o.many.Send(fmt.Sprintf(`{"type":"send","to":"r%d","id":"known","payload":0}`, i))
		o.many.Await(`{"type":"receipt"}`)
	}
	o.alice.Send(`{"type":"send","to":"bob","id":"s1","stream_id":"plain","stream":true}`,
		`{"type":"send","to":"bob","id":"s2","stream_id":"indexed","index":0,"stream":true}`,
		`{"type":"send","to":"bob","id":"s3","stream_id":"late","stream":true,"deadline_ms":14000}`)
	o.alice.Await(`{"type":"receipt","request_id":"s3"}`)
	o.flood.Send(`{"type":"send","to":"bob","id":"known","payload":0}`)
	o.flood.Await(`{"type":"receipt"}`)
	for _, stream := range []string{"plain", "indexed", "late"} {
		o.bob.Await(`{"type":"message","stream_id":"` + stream + `"}`)
	}
	return o
}

func (o *outage) agent(id string) *agoratest.Client {
	c := agoratest.Connect(o.t, agoratest.Direct{}, o.Edges[0].URL(), "agent_id="+id, nil)
	c.Expect(`{"type":"agent.registered"}`)
	return c
}

// say says things of every kind, at once and later.
func (o *outage) say() {
	for i := range lanes {
		o.many.Send(fmt.Sprintf(`{"type":"send","to":"r%d","id":"m%d","payload":1}`, i, i))
	}
	for i := range pieces {
		o.flood.Send(fmt.Sprintf(`{"type":"send","to":"bob","id":"f%d","payload":"%s"}`, i, strings.Repeat("x", 64<<10)))
	}
	o.alice.Send(`{"type":"send","to":"bob","id":"one","payload":"one"}`,
		`{"type":"send_chunk","to":"bob","id":"c1","stream_id":"plain","chunk":"1"}`,
		`{"type":"send_chunk","to":"bob","id":"c2","stream_id":"indexed","index":1,"chunk":"1"}`,
		`{"type":"space.publish","id":"e1","space":"room","data":{"text":"e1"},"receipts":["stored"]}`,
		`{"type":"send","to":"bob","id":"rq","payload":{"request_id":"q"},"deadline_ms":6000}`)
	o.numbers.Send(`{"type":"send","to":"bob","n":1,"payload":"n1"}`)
	o.joiner.Send(`{"type":"space.join","id":"j","space":"room"}`)
	o.listen(13 * time.Second)
	o.alice.Send(`{"type":"send","to":"bob","id":"new","payload":"new"}`, `{"type":"send","to":"joiner","id":"fresh","payload":"fresh"}`,
		`{"type":"send","to":"bob","id":"stream","stream_id":"new","stream":true}`, `{"type":"send_chunk","to":"bob","id":"silent","stream_id":"new","chunk":"1"}`,
		`{"type":"space.publish","id":"e2","space":"room","data":{"text":"e2"},"receipts":["stored"]}`)
	o.numbers.Send(`{"type":"send","to":"bob","n":2,"payload":"n2"}`)
}

// listen notes what comes until a time since the begin.
func (o *outage) listen(until time.Duration) {
	o.t.Helper()
	for time.Since(o.begin) < until {
		for _, c := range []*agoratest.Client{o.alice, o.bob, o.numbers, o.flood, o.many, o.joiner} {
			for f, ok := c.Next(5 * time.Millisecond); ok; f, ok = c.Next(5 * time.Millisecond) {
				o.heard[c] = append(o.heard[c], noted{f, time.Since(o.begin).Round(100 * time.Millisecond)})
			}
			if err := c.Gone(); err != nil {
				o.t.Fatalf("a connection is gone: %v", err)
			}
		}
	}
}

// of returns what a client heard that fits a pattern.
func (o *outage) of(c *agoratest.Client, pattern string) (all []noted) {
	for _, n := range o.heard[c] {
		if n.Match(pattern) == "" {
			all = append(all, n)
		}
	}
	return all
}

// judgeAnswers wants every frame with an id answered, once; with UNAVAILABLE and when to try again, or with a receipt,
// whose message has arrived.
func (o *outage) judgeAnswers(down time.Duration) {
	ids := map[*agoratest.Client][]string{o.alice: {"one", "c1", "c2", "e1", "new", "fresh", "stream", "e2"}}
	for i := range lanes {
		ids[o.many] = append(ids[o.many], fmt.Sprint("m", i))
	}
	for i := range pieces {
		ids[o.flood] = append(ids[o.flood], fmt.Sprint("f", i))
	}
	for c, all := range ids {
		for _, id := range all {
			answers := o.of(c, `{"request_id":"`+id+`"}`)
			if len(answers) != 1 {
				o.t.Errorf("%s is answered %d times: %.300v", id, len(answers), answers)
				continue
			}
			a := answers[0]
			if a.Type() != "receipt" && (a.Text("code") != "UNAVAILABLE" || a.Uint("retry_after_ms") == 0) {
				o.t.Errorf("%s is answered %s", id, a.Frame)
			}
			if a.after > down {
				o.t.Errorf("%s is answered after %v", id, a.after)
			}
		}
	}
	if got := o.of(o.alice, `{"request_id":"silent"}`); len(got) != 0 {
		o.t.Errorf("a part of a stream that was refused is answered: %.300v", got)
	}
}

// judgeTimes looks at when who was told, in shares of the time after which what had gathered is given up: 30 s on a
// clock that is right.
func (o *outage) judgeTimes() {
	o.t.Helper()
	given := o.of(o.alice, `{"code":"UNAVAILABLE","request_id":"one"}`)
	if len(given) != 1 {
		o.t.Fatalf("what gathered first: got %.300v, want it refused once", given)
	}
	within := func(what string, c *agoratest.Client, pattern string, from, to float64) {
		o.t.Helper()
		got := o.of(c, pattern)
		if len(got) != 1 {
			o.t.Errorf("%s: got %.300v, want it once", what, got)
			return
		}
		if share := got[0].after.Seconds() / given[0].after.Seconds(); share < from || share > to {
			o.t.Errorf("%s: told after %.2f of the time that gathering lasts, want %.2f to %.2f", what, share, from, to)
		}
	}
	within("a request's deadline", o.alice, `{"code":"TIMEOUT","request_id":"rq"}`, 0.18, 0.3) // 6 s
	within("a join", o.joiner, `{"code":"UNAVAILABLE","request_id":"j"}`, 0.36, 0.48)          // 12 s
	for _, id := range []string{"new", "fresh", "stream", "e2"} {
		within("what begins late", o.alice, `{"code":"UNAVAILABLE","request_id":"`+id+`"}`, 0.42, 0.5) // said after 13 s
	}
	for _, id := range []string{"c1", "c2", "e1"} {
		within("what gathered", o.alice, `{"code":"UNAVAILABLE","request_id":"`+id+`"}`, 0.95, 1.08)
	}
	within("a stream's deadline", o.alice, `{"code":"TIMEOUT","stream_id":"late"}`, 0.95, 1.08)
	within("a number", o.numbers, `{"code":"UNAVAILABLE","n":1}`, 0.95, 1.08)
	within("a number behind it", o.numbers, `{"code":"UNAVAILABLE","n":2}`, 0.95, 1.08)
	within("the last of many", o.many, `{"request_id":"m99"}`, 0.95, 1.08)
}

// judgeBob compares what arrived with what the senders were told.
func (o *outage) judgeBob() {
	for _, stream := range []string{"plain", "indexed", "late"} {
		told := len(o.of(o.alice, `{"code":"UNAVAILABLE","stream_id":"`+stream+`"}`)) + len(o.of(o.alice, `{"code":"TIMEOUT","stream_id":"`+stream+`"}`))
		over := len(o.of(o.bob, `{"type":"error","from":"alice","stream_id":"`+stream+`"}`))
		if over != min(told, 1) {
			o.t.Errorf("stream %s: its sender was told %d times that it is over, its receiver %d times", stream, told, over)
		}
	}
	for id, at := range map[string]string{"one": `{"payload":"one"}`, "new": `{"payload":"new"}`, "e1": `{"type":"space.event","seq":"<any>"}`} {
		stored, came := len(o.of(o.alice, `{"type":"receipt","request_id":"`+id+`"}`)), len(o.of(o.bob, at))
		if stored > came || came > 1 {
			o.t.Errorf("%s was receipted %d times and arrived %d times", id, stored, came)
		}
	}
	floods, stored := len(o.of(o.bob, `{"type":"message","from":"flood"}`)), len(o.of(o.flood, `{"type":"receipt"}`))
	if floods < stored+1 || floods > pieces+1 {
		o.t.Errorf("%d of the flood arrived, %d were receipted", floods, stored)
	}
}
