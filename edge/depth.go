package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// checkDepth returns an INVALID_REQUEST error for what is nested so deeply that no frame could bring it to its
// receiver: the frame itself counts as one of so many levels. It holds for what is said by every door, after that has
// put into a message what it has to.
func checkDepth(m *agora.Message, levels int) error {
	if m.Media == "" && rawjson.Deeper(m.Body, levels-1) {
		return agora.Errorf(agora.InvalidRequest, "the payload is nested more than %d deep", levels-1)
	}
	return nil
}
