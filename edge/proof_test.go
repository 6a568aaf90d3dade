package edge_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// What a connection that proves by writing has written was got, without a pong or a word of its agent; one that proves
// by acknowledging is believed nothing else, pongs included.
func TestAConnectionProvesWhatItHasGotAsItSaidItWould(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Confirm: 20 * time.Millisecond, Heartbeat: time.Hour, Timeout: 2 * time.Hour}})
	actor, err := c.Node(0).Authenticate(t.Context(), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	from, _ := registered(t, c, 1, "from")
	for _, at := range []struct {
		id    agora.AgentID
		proof edge.Proof
	}{{"writes", edge.ByWrite}, {"acks", edge.ByAck}} {
		wakes := make(woken, 1)
		s, _, err := actor.Open(t.Context(), edge.Hello{Card: agora.Agent{ID: at.id}, Conn: string(at.id), Proof: at.proof}, wakes)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Closed(true)
		s.Begin()
		from.Send(`{"type":"send","to":"` + string(at.id) + `","id":"1","receipts":["acked"],"payload":1}`)
		from.Expect(`{"type":"receipt","request_id":"1","status":"stored"}`)
		var seq uint64
		for seq == 0 {
			<-wakes
			ds, err := s.Pull(t.Context(), 1<<10, func() {})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				seq = d.Message.Seq
			}
			s.Written()
		}
		acked := `{"type":"receipt","request_id":"1","status":"acked"}`
		if at.proof == edge.ByAck {
			for data := range uint64(8) {
				s.Pong(data) // whatever ping it may be of
			}
			from.Send(`{"type":"send","to":"from","payload":2}`)
			from.Expect(`{"type":"message","payload":2}`) // and no receipt before
			if err := s.Do(t.Context(), &edge.Command{Verb: edge.Ack, Seq: seq}); err != nil {
				t.Fatal(err)
			}
		}
		from.Expect(acked)
	}
}
