package client

import (
	"testing"
)

// For a client that never acknowledges, an edge takes what it has written for read. This one does, but perhaps not before
// its application has taken a first message: so it says so on every connection, before anything comes.
func TestEveryConnectionBeginsWithAnAcknowledgement(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, conn := dial(t, p, Config{LastSeq: 7})
	for range 2 {
		if f := conn.any(); f.Type != "ack" || f.Space != "" || f.Seq != 7 {
			t.Fatalf("behind its registration the client sent %s, want an ack of 7", f.Append(nil))
		}
		conn.cut()
		conn = p.accept()
		conn.register(true)
	}
}
