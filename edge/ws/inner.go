package ws

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// inner is the names of requests of other dialects that the agent of one connection was handed: their own, and those that they have in their
// payloads, which an agent that knows no other repeats alone.
type inner struct {
	mu    sync.Mutex // guards the fields below
	names map[innerName]string
	order []innerName
}

// innerName is a name that a request of a peer's goes by: its value is the request's own, empty where two go by it.
type innerName struct {
	peer agora.AgentID
	name string
}

// maxInner is how many names of a connection are kept in mind.
const maxInner = 512

// learns notes the names of a request of another dialect that is about to be written.
func learns(c *conn, m *agora.Message) {
	if m.Kind != agora.Request || m.Meta.Request == "" || m.Media != "" {
		return
	}
	found, _ := c.door.inner.LoadOrStore(c, new(inner))
	i := found.(*inner)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.put(innerName{m.From, m.Meta.Request}, m.Meta.Request)
	if name := wire.RequestIDOf(m.Body); name != "" {
		i.put(innerName{m.From, name}, m.Meta.Request)
	}
}

// put notes a name; mu is held.
func (i *inner) put(k innerName, request string) {
	if old, known := i.names[k]; known {
		if old != request {
			i.names[k] = ""
		}
		return
	}
	if i.names == nil {
		i.names = map[innerName]string{}
	}
	i.names[k] = request
	if i.order = append(i.order, k); len(i.order) > maxInner {
		delete(i.names, i.order[0])
		i.order = i.order[1:]
	}
}

// meant returns the own name of the request of a peer's that a reply names in its payload alone; that name itself where no request, or more than one, goes by it.
func meant(c *conn, peer agora.AgentID, name string) string {
	found, ok := c.door.inner.Load(c)
	if !ok {
		return name
	}
	i := found.(*inner)
	i.mu.Lock()
	defer i.mu.Unlock()
	if own := i.names[innerName{peer, name}]; own != "" {
		return own
	}
	return name
}
