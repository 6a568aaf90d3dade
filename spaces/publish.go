package spaces

import (
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/eventdata"
)

// Publication returns what an agent publishes as members get it: signed with the agent's id, stamped with the
// cluster's time where it bears none, and in several parts, the deltas of one event, where its text is a large one. Data that is no JSON
// object is INVALID_REQUEST. What it returns is a copy.
func (h *Hub) Publication(data json.RawMessage, from agora.AgentID) ([]json.RawMessage, error) {
	signed, err := h.sign(data, from)
	if err != nil {
		return nil, err
	}
	if parts := eventdata.Split(signed, h.cfg.DeltaThreshold); parts != nil {
		return parts, nil
	}
	return []json.RawMessage{signed}, nil
}

// Opening returns the data that opens a streamed event as members get it: like [Hub.Publication], but in one part.
func (h *Hub) Opening(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return h.sign(data, from)
}

// Delta returns the data of one part of a streamed event as members get it: with a string `text`, and signed where it
// bears a signature. INVALID_REQUEST. What it returns is a copy.
func (h *Hub) Delta(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return eventdata.SignDelta(data, from)
}

func (h *Hub) sign(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return eventdata.Sign(data, from, h.cfg.Broker.Now().Unix())
}
