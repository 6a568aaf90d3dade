package ledger

import (
	"hash/crc32"
	"hash/fnv"

	"github.com/agora-relay/agora"
)

// saying tells what was said under a number or an index from something else, in so few bits that every number can keep it: a checksum, which is never 0. An
// event is known by its key, as an edge may put its own clock's time into the body each time that it comes; and what stream it is of does not count, as an edge may
// have named that itself.
func saying(m *agora.Message) uint32 {
	var room [128]byte
	name := append(room[:0], byte(m.Kind), byte(m.Part))
	sum, castagnoli := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	if m.Kind == agora.Event && m.ID != "" {
		name = append(name, m.ID...)
	} else {
		sum = crc32.Update(sum, castagnoli, m.Body)
	}
	return crc32.Update(sum, castagnoli, name) | 1
}

// hashOf tells a message from another, as saying does, in more bits and with its stream: few are kept, and who takes something else for stored
// by it loses that. A message that has a key is known by it alone.
func hashOf(m *agora.Message) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(m.Kind), byte(m.Part)})
	if m.ID != "" {
		h.Write([]byte(m.ID))
		return h.Sum64()
	}
	h.Write([]byte(m.Stream))
	h.Write([]byte{0})
	h.Write([]byte(m.Media))
	h.Write(m.Body)
	return h.Sum64()
}
