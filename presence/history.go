package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// Event is the beginning or the end of an agent's session at one edge, or the session's end permanently.
type Event struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"` // Began, Left or Over
	Edge    string    `json:"edge"`
	Conn    string    `json:"conn,omitempty"`
	Session string    `json:"session"`
	Epoch   uint64    `json:"epoch"`
	Why     string    `json:"why,omitempty"`     // Left: the reason
	After   uint64    `json:"after,omitempty"`   // Began: position behind which delivery began
	Cursor  uint64    `json:"cursor,omitempty"`  // Left: last position known to have arrived
	Written uint64    `json:"written,omitempty"` // Left: last position written to the socket
}

// What an Event can be.
const (
	Began = "began"
	Left  = "left"
	Over  = "over"
)

// keepEvents is how many events are kept of an agent: those of its last eight sessions.
const keepEvents = 24

// historyFor is how long the history of an agent is kept whose session has begun and not ended.
const historyFor = 7 * 24 * time.Hour

// Note keeps an event in the agent's short history, the oldest of which are dropped. Behind the
// end of a session it goes with what else is kept of the agent.
func (s Operators) Note(ctx context.Context, tenant string, id agora.AgentID, e Event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	keep := historyFor
	if e.What != Began {
		keep = s.cfg.Grace + s.cfg.Known + s.cfg.Remember
	}
	key := keysOf(member(tenant, id), "").history()
	p := s.rdb.Pipeline()
	p.LPush(ctx, key, b)
	p.LTrim(ctx, key, 0, keepEvents-1)
	p.PExpire(ctx, key, keep)
	_, err = p.Exec(ctx)
	return unavailable(err)
}

// History returns the events that are kept of an agent, the oldest first.
func (s Operators) History(ctx context.Context, tenant string, id agora.AgentID) ([]Event, error) {
	all, err := s.rdb.LRange(ctx, keysOf(member(tenant, id), "").history(), 0, -1).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	events := make([]Event, 0, len(all))
	for _, text := range all {
		var e Event
		if json.Unmarshal([]byte(text), &e) == nil { // one of a later version is left out
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), a.At.Compare(b.At))
	})
	return events, nil
}
