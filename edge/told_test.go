package edge_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// deaf is a connection that nothing is told to: it fails the test for receipts.
type deaf struct{ t *testing.T }

func (deaf) Wake()             {}
func (deaf) Close(edge.Reason) {}

func (d deaf) Notify(n edge.Notice) {
	if n.Kind == edge.NoticeReceipt {
		d.t.Errorf("the connection is told %+v", n)
	}
}

// Anyone who says what its Told is hears of every part there, numbered chunks included, and the connection does not.
func TestWhatBecameOfEveryPartIsToldWhereItsSenderSaid(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	registered(t, c, 1, "bob")
	s, _, err := actor(t, c, 0).Open(await.Context(t), edge.Hello{Card: agora.Agent{ID: "anna"}, Conn: "deaf"}, deaf{t})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Closed(true)
	s.Begin()
	for i, part := range []agora.Part{agora.Start, agora.Chunk, agora.Chunk, agora.End, agora.Whole} {
		m := to("bob", part, "s", `"x"`)
		m.N = uint64(i + 1)
		told := make(chan edge.Notice, 1)
		if err := s.Do(await.Context(t), &edge.Command{Verb: edge.Send, Message: m, Told: func(n edge.Notice) { told <- n }}); err != nil {
			t.Fatalf("part %d: %v", part, err)
		}
		if n := await.Recv(t, "what became of it", told); n.Kind != edge.NoticeReceipt || n.N != m.N || n.Seq == 0 {
			t.Errorf("part %d is told %+v", part, n)
		}
	}
}
