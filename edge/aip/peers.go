package aip

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// peerQuestion is what a door asks those of other edges.
type peerQuestion struct {
	Verb  string          `json:"verb"`
	By    agora.Address   `json:"by,omitzero"`     // leaveVerb: the subscriber
	Nodes []agora.AgentID `json:"nodes,omitempty"` // leaveVerb: of which it wants to hear no more; all where there are none
}

const (
	leaveVerb = "unsubscribe"
	linkVerb  = "links" // links were made or ended: look
)

// peerAnswer is what they answer.
type peerAnswer struct {
	Found bool `json:"found,omitempty"` // leaveVerb: the subscriber has streams here
}

// askPeers asks the doors of all other edges, and reports whether one has found what it was asked about.
func (s *shared) askPeers(ctx context.Context, q peerQuestion) (found bool, err error) {
	b, err := json.Marshal(q)
	if err != nil {
		return false, err
	}
	answers, err := s.node.AskPeers(ctx, aip.Dialect, b)
	for _, b := range answers {
		var a peerAnswer
		found = json.Unmarshal(b, &a) == nil && a.Found || found
	}
	return found, err
}

// answerPeer answers the door of another edge.
func (d *Door) answerPeer(_ context.Context, question []byte) []byte {
	var q peerQuestion
	var a peerAnswer
	if json.Unmarshal(question, &q) != nil {
		return []byte(`{}`)
	}
	switch q.Verb {
	case leaveVerb:
		a.Found = d.subscribers.leave(q.By, q.Nodes)
	case linkVerb:
		d.links.hurry()
	}
	b, err := json.Marshal(a)
	if err != nil {
		return []byte(`{}`)
	}
	return b
}
