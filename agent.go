package agora

import (
	"encoding/json"
	"time"
)

// Agent is what the directory knows of an agent.
type Agent struct {
	ID           AgentID
	Name         string          // for people; the id when it gave none
	Endpoint     string          // where it says it can be reached besides; may be empty
	Type         string          // as it registered; may be empty
	Capabilities []string        // as it registered
	Metadata     json.RawMessage // as it registered; an object or nil
	RegisteredAt time.Time       // when its session began
}
