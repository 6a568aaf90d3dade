package party

import (
	"bytes"
	"encoding/json"

	"github.com/agora-relay/agora/internal/agoratest"
)

// Requests of Agora relay are named in their payload, and so are replies.

// named puts the name of a request into a payload, which is an object; an empty one changes nothing.
func named(body []byte, request string) []byte {
	if request == "" {
		return body
	}
	inside := bytes.TrimSpace(body)
	if len(inside) > 0 {
		inside = bytes.TrimSpace(inside[1 : len(inside)-1])
	}
	out := []byte(`{"request_id":` + agoratest.Quote(request))
	if len(inside) > 0 {
		out = append(append(out, ','), inside...)
	}
	return append(out, '}')
}

// nameIn returns the name of the request in a payload; empty for none.
func nameIn(body []byte) string {
	var v struct {
		ID string `json:"request_id"`
	}
	_ = json.Unmarshal(body, &v) // no object: no name
	return v.ID
}

// numbers are the last numbers that were used up of what one session says, by addressee.
type numbers map[string]uint64

// place is where a word goes: to an agent, or to a space.
func (w *Word) place() string {
	if w.Space != "" {
		return "#" + w.Space
	}
	return string(w.Peer)
}

// next returns the number of the next word to a place. Said again it has the same one, until that is used up.
func (n numbers) next(place string) uint64 { return n[place] + 1 }

// use uses a number up.
func (n numbers) use(place string, number uint64) { n[place] = max(n[place], number) }
