package agoratest

import (
	"context"
	"net"
	"net/http"

	"github.com/agora-relay/agora/edge"
)

// Entry is where a door is opened at one edge.
type Entry struct {
	Node   *edge.Node
	Mux    *http.ServeMux               // of the edge's public port, for its paths
	Listen func() (net.Listener, error) // opens a port on loopback for a door that has its own; it is cut with the edge
}

// Opened is a door that stands open at one edge. Its methods are called in this order, and Drain not where the edge
// dies.
type Opened interface {
	Drain(context.Context) // empties it, but for sessions, which the node asks to reconnect; returns when ctx is over at the latest
	Close()                // lets nobody in any more, and ends what is left
	Wait()                 // returns when nothing of it runs
}
