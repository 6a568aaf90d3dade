package edge

import (
	"cmp"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// streamKey names a stream to this agent: of a peer, or an event of a space.
type streamKey struct {
	peer   agora.Address
	stream string
}

// incoming is the streams to an agent. The zero value is ready to use; its maps are made when something comes into
// them.
type incoming struct {
	mu        sync.Mutex           // guards the fields below
	open      map[streamKey]heard  // that have begun here
	cancelled map[streamKey]uint64 // by the agent, each with the position up to which it had been given
}

// heard is what is known of an open stream to an agent.
type heard struct {
	request string // that it is or answers; empty for none
	session string // of who says it; empty where its start was not seen
}

// says reports whether a part is of the stream, and not of an earlier one of its name, which another session has said.
func (h heard) says(m *agora.Message) bool {
	return m.Part == agora.Start || h.session == "" || m.Session == "" || h.session == m.Session
}

// maxIncoming bounds how many open streams to an agent are kept in mind, maxCancelled how many cancelled ones.
const (
	maxIncoming  = 4096
	maxCancelled = 256
)

// restore takes over what earlier holders of the session had cancelled.
func (i *incoming) restore(tenant string, cancelled []presence.Stream) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range cancelled {
		put(&i.cancelled, streamKey{peerAddress(tenant, c.Peer), c.Stream}, c.Seq)
	}
}

// follow follows which streams are open, by a part that has come. drop says that it is of a stream that this agent has
// cancelled, or of an earlier one than that which is open under its name. A start that was stored after the cancel
// begins a stream of its own; again says so.
func (i *incoming) follow(peer agora.Address, m *agora.Message) (drop, again bool) {
	if m.Part == agora.Whole || m.Stream == "" {
		return false, false
	}
	k := streamKey{peer, m.Stream}
	i.mu.Lock()
	defer i.mu.Unlock()
	since, cancelled := i.cancelled[k]
	switch {
	case cancelled && m.Part == agora.Start && m.Seq > since:
		delete(i.cancelled, k)
		again = true
	case cancelled || !i.open[k].says(m):
		return true, false
	}
	switch {
	case m.Part == agora.Start && len(i.open) < maxIncoming:
		put(&i.open, k, heard{cmp.Or(m.Meta.Request, m.Meta.Parent), m.Session})
	case m.Part.Ends():
		delete(i.open, k)
	}
	return false, again
}

// withholds reports whether a part is not given to the agent, which has cancelled its stream before.
func (i *incoming) withholds(peer agora.Address, m *agora.Message) bool {
	if m.Part == agora.Whole || m.Stream == "" {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	since, cancelled := i.cancelled[streamKey{peer, m.Stream}]
	return cancelled && m.Seq > since
}

// name says by which request the agent knows a stream.
func (i *incoming) name(k streamKey, request string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.open) < maxIncoming {
		put(&i.open, k, heard{request, i.open[k].session})
	}
}

// find returns the stream of a peer's that the agent names, be it by the stream's own name or by that of its request.
func (i *incoming) find(peer agora.Address, name string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.open[streamKey{peer, name}]; ok {
		return name
	}
	for k, of := range i.open {
		if of.request == name && k.peer == peer {
			return k.stream
		}
	}
	return name
}

// isOpen reports whether a stream is open, and returns what is known of it.
func (i *incoming) isOpen(k streamKey) (of heard, open bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of, open = i.open[k]
	return of, open
}

// cancel drops what follows of a stream.
func (i *incoming) cancel(k streamKey, upTo uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.open, k)
	put(&i.cancelled, k, max(upTo, i.cancelled[k]))
	for old := range i.cancelled {
		if len(i.cancelled) <= maxCancelled {
			break
		}
		delete(i.cancelled, old)
	}
}

// reopen has a stream whose cancel was not stored be cancelled once more where that is asked. What comes of it stays
// unshown.
func (i *incoming) reopen(k streamKey, of heard) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, is := i.cancelled[k]; is {
		put(&i.open, k, of)
	}
}
