package record

import "github.com/agora-relay/agora"

// A mark is a record of one part of Kind Gap and of no session, which a purge leaves: everything before it was dropped. Its N is
// the position of the last part that was.

// Mark reads a mark, and returns the position up to which everything was dropped.
func Mark(body []byte) (upTo uint64, is bool) {
	if Count(body) != 1 {
		return 0, false
	}
	var r Reader
	o, _, err := r.Open(body)
	if err != nil || o.Session != "" || o.From != "" {
		return 0, false
	}
	var m agora.Message
	if r.Part(&m) != nil || m.Kind != agora.Gap {
		return 0, false
	}
	return m.N, true
}
