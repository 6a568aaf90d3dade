package presence

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
)

// cardVersion begins every stored card.
const cardVersion = '1'

// card is an agent's card as it is stored. Metadata is a string, so that it comes back byte for byte.
type card struct {
	ID           agora.AgentID `json:"id"`
	Name         string        `json:"name,omitempty"`
	Endpoint     string        `json:"endpoint,omitempty"`
	Type         string        `json:"type,omitempty"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Metadata     string        `json:"metadata,omitempty"`
	RegisteredAt int64         `json:"registered_at,omitempty"` // µs
}

func encodeCard(a agora.Agent) (string, error) {
	c := card{ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, Type: a.Type, Capabilities: a.Capabilities, Metadata: string(a.Metadata)}
	if !a.RegisteredAt.IsZero() {
		c.RegisteredAt = a.RegisteredAt.UnixMicro()
	}
	b, err := json.Marshal(c)
	return string(cardVersion) + string(b), err
}

// decodeCard reads a card; since, in ms, is when the session began by the server's clock. Of a card in
// a version from the future only the id is known.
func decodeCard(id agora.AgentID, s string, since int64) agora.Agent {
	a := agora.Agent{ID: id, Name: string(id), RegisteredAt: millis(since)}
	var c card
	if len(s) == 0 || s[0] != cardVersion || json.Unmarshal([]byte(s[1:]), &c) != nil {
		return a
	}
	a.Name, a.Endpoint, a.Type, a.Capabilities = c.Name, c.Endpoint, c.Type, c.Capabilities
	if c.Metadata != "" {
		a.Metadata = json.RawMessage(c.Metadata)
	}
	if c.RegisteredAt != 0 {
		a.RegisteredAt = time.UnixMicro(c.RegisteredAt)
	}
	return a
}

// SetCard replaces the card of a running session.
func (s *Store) SetCard(ctx context.Context, c Claim, card agora.Agent) error {
	v, err := encodeCard(card)
	if err != nil {
		return err
	}
	return s.asHolder(ctx, call{cardScript, []string{c.keys().rec}, []any{c.Epoch, v}})
}

// asHolder runs a script that answers 0 where the claim was taken.
func (s *Store) asHolder(ctx context.Context, c call) error {
	r, err := s.run(ctx, c)
	if err != nil {
		return err
	}
	if !r.yes() {
		return ErrDeposed
	}
	return nil
}

// millis is a stored time; 0 is the zero time.
func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// stored is a time as it is stored.
func stored(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
