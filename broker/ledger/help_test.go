package ledger

import (
	"fmt"

	"github.com/agora-relay/agora"
)

func text(s string) agora.Message { return agora.Message{Body: []byte(s)} }

func part(p agora.Part, stream, body string) agora.Message {
	return agora.Message{Part: p, Stream: stream, Body: []byte(body)}
}

func indexed(p agora.Part, stream string, index uint32) agora.Message {
	return agora.Message{Part: p, Stream: stream, Indexed: true, Index: index, Body: fmt.Appendf(nil, "%d", index)}
}

func numbered(n uint64, m agora.Message) agora.Message { m.N = n; return m }
func ided(id string, m agora.Message) agora.Message    { m.ID = id; return m }
func kind(k agora.Kind, m agora.Message) agora.Message { m.Kind = k; return m }
