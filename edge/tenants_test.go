package edge_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// neighbours are two tenants: b, where bob and alice talk and meet, and a, from which mallory tries to get across.
type neighbours struct {
	*testing.T
	c          *agoratest.Cluster
	bob, alice *agoratest.Client // of tenant b
	mallory    *agoratest.Client // of tenant a
	bobs       agoratest.Frame   // what bob was welcomed with
	seq        uint64            // of what bob got last
	event      string            // that alice streams into the attic
}

// settle has bob and alice do whatever there is to be crossed: a stream, a space, an event, a message.
func settle(t *testing.T) *neighbours {
	n := &neighbours{T: t, c: start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: byWord{}}})}
	n.bob = knock(t, n.c, 0, "b bob", "bob")
	n.bobs = n.bob.Expect(`{"type":"agent.registered"}`)
	n.alice = as(t, n.c, 1, "b alice", "alice")
	n.alice.Send(`{"type":"send","to":"bob","payload":0}`, `{"type":"send","to":"bob","stream_id":"s1","stream":true}`)
	n.bob.Expect(`{"type":"message"}`)
	n.seq = n.bob.Expect(`{"type":"message","stream_id":"s1"}`).Seq()
	for _, c := range []*agoratest.Client{n.bob, n.alice} {
		c.Send(`{"type":"space.join","space":"attic"}`, `{"type":"space.join","space":"mcp.b"}`)
		c.Await(`{"type":"space.joined","space":"mcp.b"}`)
	}
	n.alice.Send(`{"type":"space.publish","id":"p","space":"attic","data":{"secret":"b"},"stream":true}`)
	n.event = n.bob.Await(`{"type":"space.event.delta"}`).Text("event_id")
	for published, shown := false, false; !published || !shown; { // in either order
		f := n.alice.Take("the event").Type()
		published, shown = published || f == "space.published", shown || f == "space.event.delta"
	}
	n.mallory = as(t, n.c, 1, "a mallory", "mallory")
	for _, c := range []*agoratest.Client{n.bob, n.alice} { // until all that they tell each other has come
		c.Send(`{"type":"space.list","id":"settled"}`)
		c.Await(`{"type":"space.list","id":"settled"}`)
		for ok := true; ok; _, ok = c.Next(200 * time.Millisecond) {
		}
	}
	n.quiet("at first")
	return n
}

// quiet wants nothing to have reached tenant b.
func (n *neighbours) quiet(about string) {
	n.Helper()
	for _, c := range []*agoratest.Client{n.bob, n.alice} {
		c.Send(`{"type":"space.list","id":"still"}`) // which comes behind whatever was on its way at this edge
		if f := c.Take(about); f.Type() != "space.list" || strings.Contains(string(f), "mallory") {
			n.Errorf("%s: tenant b is told %s", about, f)
		}
	}
}

var positions = regexp.MustCompile(`,"seq":\d+`)

// blind wants a frame about something of tenant b to be answered like one about nothing at all: pairs are
// names of that and of nothing, which are swapped in the frame.
func (n *neighbours) blind(frame string, pairs ...string) {
	n.Helper()
	nothing := strings.NewReplacer(pairs...)
	ask := func(frame string) (answers string) {
		n.mallory.Send(frame, `{"type":"space.list","id":"behind"}`)
		for {
			f := n.mallory.Take("an answer")
			if f.Type() == "space.list" {
				return answers
			}
			if f.Type() != "gap" { // positions are of a log that all share: how they lie tells how much is stored, and nothing else
				answers += positions.ReplaceAllString(string(f), "") + "\n"
			}
		}
	}
	about := ask(frame)
	if want := ask(nothing.Replace(frame)); nothing.Replace(about) != want {
		n.Errorf("%s is answered\n%swant, as for nothing,\n%s", frame, about, want)
	}
	n.quiet(frame)
}

func TestNoVerbCrossesFromOneTenantToAnother(t *testing.T) {
	t.Parallel()
	n := settle(t)
	agent := []string{"bob", "nob"}
	for _, frame := range []string{
		`{"type":"send","id":"i","to":"bob","payload":1}`,
		`{"type":"send","to":"bob","n":1,"payload":1}`,
		`{"type":"send","id":"i","to":"bob","payload":{"request_id":"r"},"deadline_ms":50000,"receipts":["stored","delivered","acked"]}`,
		`{"type":"send","id":"i","to":"bob","stream_id":"s1","stream":true}`,
		`{"type":"send_chunk","id":"i","to":"bob","stream_id":"s1","chunk":"x"}`,
		`{"type":"send_chunk","id":"i","to":"bob","stream_id":"s1","chunk":"x","index":1}`,
		`{"type":"send_end","id":"i","to":"bob","stream_id":"s1"}`,
		`{"type":"reply","id":"i","to":"bob","payload":1}`,
		`{"type":"reply","id":"i","to":"bob","stream_id":"s1","stream":true}`,
		`{"type":"reply_chunk","id":"i","to":"bob","stream_id":"s1","chunk":"x"}`,
		`{"type":"reply_end","id":"i","to":"bob","stream_id":"s1"}`,
		`{"type":"cancel","id":"i","to":"bob","stream_id":"s1"}`,
	} {
		n.blind(frame, agent...)
	}
	n.blind(`{"type":"cancel","id":"i","to":"alice","stream_id":"s1"}`, "alice", "nalice")
	n.blind(fmt.Sprintf(`{"type":"ack","seq":%d}`, n.seq), fmt.Sprint(n.seq), fmt.Sprint(n.seq+7<<20))
	n.blind(fmt.Sprintf(`{"type":"ack","space":"attic","seq":%d}`, n.seq), "attic", "nowhere")
	for _, frame := range []string{
		`{"type":"space.leave","id":"i","space":"attic"}`,
		`{"type":"space.publish","id":"i","space":"attic","data":{}}`,
		`{"type":"space.publish","id":"i","space":"attic","data":{},"stream":true}`,
		`{"type":"space.publish.delta","space":"attic","event_id":"EVENT","data":{"text":"x"}}`,
		`{"type":"space.publish.done","space":"attic","event_id":"EVENT"}`,
		`{"type":"space.event.cancel","id":"i","space":"attic","event_id":"EVENT"}`,
		`{"type":"space.event.cancel","id":"i","event_id":"EVENT"}`,
		`{"type":"space.create","id":"i","space":"attic"}`,
		`{"type":"space.join","id":"i","space":"attic","history":100}`,
		fmt.Sprintf(`{"type":"space.join","id":"i","space":"mcp.b","last_seq":%d}`, n.seq),
		`{"type":"space.publish.delta","space":"attic","event_id":"EVENT","data":{"text":"x"}}`,
		`{"type":"space.publish.done","space":"attic","event_id":"EVENT"}`,
		`{"type":"space.event.cancel","id":"i","space":"attic","event_id":"EVENT"}`,
		`{"type":"space.event.cancel","id":"i","event_id":"EVENT"}`,
		`{"type":"space.leave","id":"i","space":"attic"}`,
	} {
		n.blind(strings.ReplaceAll(frame, "EVENT", n.event), "attic", "nowhere", "mcp.b", "mcp.n", n.event, "evt_none")
	}
}

func TestSpacesOfOneNameOfTwoTenantsAreTwo(t *testing.T) {
	t.Parallel()
	n := settle(t)
	n.mallory.Send(`{"type":"space.join","space":"attic","history":100}`)
	n.mallory.Expect(`{"type":"space.joined","space":"attic","members":["mallory"]}`)
	n.mallory.Send(`{"type":"space.publish","space":"attic","data":{"from":"alice","text":"hello"}}`)
	n.mallory.Expect(`{"type":"space.event","space":"attic","data":{"from":"mallory","text":"hello","timestamp":"<any>"}}`)
	n.quiet("an event of the other attic")
	n.alice.Send(fmt.Sprintf(`{"type":"space.publish.done","space":"attic","event_id":%q}`, n.event))
	n.bob.Expect(`{"type":"space.event.done"}`)
	n.mallory.ExpectNone(during(200 * time.Millisecond))
	n.mallory.Send(`{"type":"space.leave","space":"attic"}`)
	n.mallory.Close(1000)
	n.alice.Expect(`{"type":"space.event.done"}`)
	n.quiet("a leave of the other attic")
}

func TestTheDirectoryShowsItsOwnTenantAlone(t *testing.T) {
	t.Parallel()
	n := settle(t)
	n.mallory.Send(`{"type":"list"}`, `{"type":"space.list","id":"l"}`)
	if f := n.mallory.Expect(`{"type":"agents"}`); strings.Contains(string(f), "bob") || strings.Contains(string(f), "alice") || !strings.Contains(string(f), "mallory") {
		t.Errorf("mallory sees %s", f)
	}
	n.mallory.ExpectText(`{"type":"space.list","id":"l","spaces":[{"id":"agent.status","type":"system","member_count":0}]}`)
	n.mallory.Send(`{"type":"space.join","space":"agent.status","history":100}`)
	n.mallory.Expect(`{"type":"space.joined","members":["mallory"]}`)
	as(t, n.c, 0, "b carol", "carol").Close(1000)
	as(t, n.c, 0, "a trudy", "trudy").Close(1000)
	seen := ""
	for !strings.Contains(seen, `"trudy","status":"offline"`) {
		seen += string(n.mallory.Take("trudy goes"))
	}
	if strings.Contains(seen, "bob") || strings.Contains(seen, "alice") || strings.Contains(seen, "carol") {
		t.Errorf("mallory is told of tenant b: %s", seen)
	}
}

func TestTheSameIDOfTwoTenantsIsTwoAgents(t *testing.T) {
	t.Parallel()
	n := settle(t)
	stranger := `"<any>"`
	// With everything that bob's own client knows: its token, its position, its spaces.
	twin := knock(t, n.c, 1, "a bob", "bob", "resume_token", n.bobs.Text("resume_token"), "last_seq", fmt.Sprint(n.seq-1<<8))
	f := twin.Expect(`{"type":"agent.registered","agent":{"id":"bob","connection_id":` + stranger + `}}`)
	if f.Has("resumed") || f.Text("resume_token") == n.bobs.Text("resume_token") {
		t.Errorf("the stranger is welcomed as bob: %s", f)
	}
	twin.Send(`{"type":"space.list","id":"behind"}`)
	for f := twin.Take("an answer"); f.Type() != "space.list"; f = twin.Take("an answer") {
		if f.Type() != "gap" { // which a position of another log may bring
			t.Errorf("the stranger gets %s", f)
		}
	}
	in := agoratest.Connect(t, agoratest.Direct{}, n.c.URL(0), "token=a+bob2", nil)
	in.Send(fmt.Sprintf(`{"type":"agent.register","agent":{"id":"bob2"},"last_seq":%d,"spaces":{"attic":1,"mcp.b":1},"resume_token":%s}`, n.seq, n.bobs.Raw("resume_token")))
	in.Expect(`{"type":"agent.registered"}`)
	in.Send(`{"type":"space.publish","id":"p","space":"attic","data":{}}`)
	in.Expect(`{"type":"error","code":"SPACE_NOT_FOUND","request_id":"p"}`)
	twin.Send(`{"type":"send","to":"bob","payload":"to myself"}`)
	twin.Await(`{"type":"message","from":"bob","payload":"to myself"}`)
	n.alice.Send(`{"type":"send","to":"bob","payload":"to bob"}`)
	n.bob.Await(`{"type":"message","from":"alice","payload":"to bob"}`)
	twin.ExpectNone(during(200 * time.Millisecond))
	twin.Close(1000) // whose end ends nothing of bob's
	n.quiet("a stranger's end")
	n.alice.Send(`{"type":"send_chunk","to":"bob","stream_id":"s1","chunk":"on"}`)
	n.bob.Expect(`{"type":"message_chunk","chunk":"on"}`)
	if got := n.c.Node(1).Tenants(); got["b"].Messages.Load() == 0 || got["a"] == nil || got["a"].Messages.Load() > 2 {
		t.Errorf("counted for a: %d messages, for b: %d", got["a"].Messages.Load(), got["b"].Messages.Load())
	}
}
