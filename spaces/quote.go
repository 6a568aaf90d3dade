package spaces

import (
	"bytes"
	"encoding/json"

	"github.com/agora-relay/agora"
)

// quote returns an id as JSON, with '<', '>' and '&' as they are.
func quote(id agora.AgentID) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(id) != nil {
		return []byte(`""`) // a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
