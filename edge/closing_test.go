package edge_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// closes is a connection that says why it is closed.
type closes chan edge.Reason

func (closes) Wake()                 {}
func (closes) Notify(edge.Notice)    {}
func (c closes) Close(r edge.Reason) { c <- r }

// A session may just begin while its edge is closed: nobody would end its connection later, and its agent would be
// refused all it says for as long as it stays.
func TestASessionThatBeginsWhileItsEdgeIsClosedIsToldSo(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1})
	k := c.AddEdge()
	conn := make(closes, 1)
	a, opened := actor(t, c, k), make(chan *edge.Session, 1)
	c.HoldLog(k, true) // where its mailbox is looked for
	go func() {
		s, _, err := a.Open(await.Context(t), edge.Hello{Card: agora.Agent{ID: "anna"}, Conn: "c"}, conn)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	await.True(t, "its claim is written", func() bool {
		at, err := c.Node(0).Config().Presence.Operators.Inspect(await.Context(t), "default", "anna")
		return err == nil && at.Known
	})
	c.Node(k).Close()
	c.HoldLog(k, false)
	if s := await.Recv(t, "the session begins all the same", opened); s != nil {
		defer s.Closed(false)
	}
	if r := await.Recv(t, "its connection is closed", conn); r.Cause != edge.Drained {
		t.Errorf("closed for %+v, want that the edge is shutting down", r)
	}
}
