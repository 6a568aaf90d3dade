package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// Pings are what asks an agent how far it is: one that says so by itself is asked nothing.
func TestAnAgentThatAcknowledgesIsNotPingedForWhatItGets(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{
		Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: 20 * time.Millisecond,
	}})
	from, _ := registered(t, c, 0, "from")
	for _, acks := range []bool{false, true} {
		id := fmt.Sprint("to-", acks)
		to, _ := registered(t, c, 0, id)
		before := to.Pings() // the first message may come before the first acknowledgement
		for n := 1; n <= 8; n++ {
			stored(from, id, n)
			f := got(to, n)
			if acks {
				to.Send(`{"type":"ack","seq":` + f.Raw("seq") + `}`)
				to.Barrier() // else the next message may come before the edge has read that
			}
			if n == 1 {
				to.Until("the ping for the first", func() bool { return to.Pings() > before })
				before = to.Pings()
			}
			if !acks && n > 1 {
				to.Until("a ping", func() bool { return to.Pings() > before })
				before = to.Pings()
			}
		}
		if pings := to.Pings() - before; acks && pings > 1 { // one follows that of the first, to see whether anything is left to be confirmed
			t.Errorf("pinged %d times for 7 messages, want not at all", pings)
		}
	}
}

// The position that a join is answered by is that of no event, but delivery continues behind it: it may be acknowledged
// wherever the session continues.
func TestThePositionThatAJoinIsAnsweredByMayBeAcknowledgedAtAnotherEdge(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	a, welcome := registered(t, c, 0, "a")
	a.Send(`{"type":"space.join","space":"room"}`)
	seq := a.Expect(`{"type":"space.joined"}`).Raw("seq")
	a.Send(`{"type":"ack","space":"room","seq":` + seq + `}`)
	a.Barrier()
	b, _ := registered(t, c, 1, "a", token(welcome), `"spaces":{"room":1}`) // an edge that knows less of it
	b.Send(`{"type":"ack","id":"known","space":"room","seq":`+seq+`}`, `{"type":"ack","id":"unknown","space":"room","seq":1`+seq+`}`)
	if f := b.Expect(`{"type":"error"}`); f.Text("request_id") != "unknown" {
		t.Errorf("refused is %s, want only what nobody was told", f)
	}
}
