package agora

import "encoding/binary"

// RosterBody is what a Roster says: who joined or left a space, and who is in it since. The change's version is the
// Roster's N.
type RosterBody struct {
	Joined  AgentID   // empty where nobody joined
	Left    AgentID   // empty where nobody left
	Members []AgentID // nil where they are too many to be named
}

// Message returns the Roster, but for N and To.
func (r RosterBody) Message() Message {
	size := 4*binary.MaxVarintLen64 + len(r.Joined) + len(r.Left)
	for _, id := range r.Members {
		size += binary.MaxVarintLen64 + len(id)
	}
	b := appendCounted(make([]byte, 0, size), string(r.Joined))
	b = appendCounted(b, string(r.Left))
	if r.Members != nil { // one more than there are: none is not the same as not named
		b = binary.AppendUvarint(b, uint64(len(r.Members))+1)
	} else {
		b = append(b, 0)
	}
	for _, id := range r.Members {
		b = appendCounted(b, string(id))
	}
	return Message{Kind: Roster, Body: b, Media: MediaAgora}
}

// RosterBody returns what a Roster says, also one that was stored as JSON. It fails where m says nothing of the kind.
func (m *Message) RosterBody() (RosterBody, error) {
	if m.Media == "" {
		return oldRoster(m)
	}
	d := m.decoder(Roster)
	r := RosterBody{Joined: AgentID(d.string()), Left: AgentID(d.string())}
	if n := d.uvarint(); n > 0 && n-1 <= uint64(len(d.rest)) { // each takes a byte or more
		r.Members = make([]AgentID, n-1)
		for i := range r.Members {
			r.Members[i] = AgentID(d.string())
		}
	} else {
		d.bad = d.bad || n > 0
	}
	return r, d.end()
}
