package edge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
)

// An event whose text goes out in deltas is one frame to its sender: whatever becomes of its parts there is one answer,
// and it names the frame.
func TestALargeEventIsAnsweredOnceByItsNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: unasked(admission.Limits{Frame: 4 << 20, InFlight: 8 << 20})})
	a, _ := registered(t, c, 0, "a")
	a.Send(`{"type":"space.join","id":"1","space":"lab"}`)
	a.Await(`{"type":"space.joined"}`)
	member, _ := registered(t, c, 0, "member")
	member.Send(`{"type":"space.join","id":"1","space":"lab"}`)
	a.Await(`{"type":"space.members","joined":"member"}`)
	large := fmt.Sprintf(`{"type":"space.publish","space":"lab","n":1,"id":"p","data":{"text":"%s"}}`, strings.Repeat("x", 3<<20))
	small := `{"type":"space.publish","space":"lab","n":2,"data":{"text":"small"}}`
	c.CutLog(0)
	a.Send(large) // more than a lane gathers: its start will be stored, and its end not
	a.Send(small) // nor this, which would overtake it
	a.Barrier()
	c.MendEdge(0)
	answered(t, a, `{"type":"error","code":"UNAVAILABLE","space":"lab","n":1,"request_id":"p"}`, `{"type":"error","code":"UNAVAILABLE","space":"lab","n":2}`)
	member.Await(`{"type":"space.event.cancel","space":"lab"}`)
	a.Send(large, small)
	answered(t, a, `{"type":"error","code":"STREAM_ABORTED","space":"lab","n":1,"request_id":"p"}`, `{"type":"receipt","space":"lab","n":2}`)
	member.Await(`{"type":"space.event","space":"lab"}`)
}

// One that can't even begin is refused for what is wrong with it.
func TestALargeEventThatCannotBeginIsToldWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: unasked(admission.Limits{Frame: 16 << 20})})
	a, _ := registered(t, c, 0, "a")
	a.Send(`{"type":"space.join","id":"1","space":"lab"}`)
	a.Await(`{"type":"space.joined"}`)
	a.Send(fmt.Sprintf(`{"type":"space.publish","space":"lab","n":1,"id":"p","data":{"text":"%s","picture":"%s"}}`,
		strings.Repeat("x", 64<<10), strings.Repeat("y", 9<<20))) // all but the text goes with the first part, and no record holds that
	a.Send(`{"type":"space.publish","space":"lab","n":2,"data":{"text":"small"}}`)
	answered(t, a, `{"type":"error","code":"MESSAGE_TOO_LARGE","space":"lab","n":1,"request_id":"p"}`, `{"type":"receipt","space":"lab","n":2}`)
}

// unasked has no agent asked for a pong: a test's client that writes megabytes on a busy machine can't answer in the 5
// s that it gives itself.
func unasked(l admission.Limits) edge.Config {
	return edge.Config{Limits: l, Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}
}

// answered takes frames until all the answers wanted have come, in their order and no other between them; what is no
// answer is passed over.
func answered(t *testing.T, a *agoratest.Client, want ...string) {
	t.Helper()
	for len(want) > 0 {
		f := a.Take(want[0])
		if !slices.Contains([]string{"error", "receipt"}, f.Type()) || f.Has("from") {
			continue
		}
		if d := f.Match(want[0]); d != "" {
			t.Fatalf("answered %s, want %s: %s", f, want[0], d)
		}
		want = want[1:]
	}
}
