package demux

import "github.com/agora-relay/agora"

// key names an exchange by its peer and the stream.
type key struct {
	peer   agora.AgentID
	stream string
}

// names finds exchanges by what their peers call them. Its Demux's mu guards it.
type names struct {
	streams map[key]*Exchange // the last one under each name, until it is closed
	bound   map[key]*Exchange // by the names that Bind gave them
	calls   map[string]*Exchange
	given   recent // streams that were given up here: what still comes of them is dropped
}

func newNames() names {
	return names{streams: map[key]*Exchange{}, bound: map[key]*Exchange{}, calls: map[string]*Exchange{}}
}

// concerned returns the exchange that a control message is about; nil for none.
func (n *names) concerned(m *agora.Message) *Exchange {
	if x := n.calls[m.Meta.Call]; x != nil {
		return x
	}
	k := key{m.From, m.Stream}
	if m.Part == agora.Abort && k.stream == "" {
		k.stream = m.AbortBody().Request
	}
	if x := n.bound[k]; x != nil {
		return x
	}
	return n.streams[k]
}

// forget takes an exchange out, under all its names.
func (n *names) forget(x *Exchange) {
	if n.streams[x.name] == x {
		delete(n.streams, x.name)
	}
	if n.calls[x.call] == x {
		delete(n.calls, x.call)
	}
	for _, k := range x.bound {
		if n.bound[k] == x {
			delete(n.bound, k)
		}
	}
}
