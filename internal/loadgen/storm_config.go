package loadgen

import (
	"context"
	"errors"
	"time"
)

// StormConfig says what a storm is. Agents and Missed are required, and System or Edges.
type StormConfig struct {
	System  System        // what carries it; Agora, with the two fields below, if nil
	Edges   []string      // WebSocket addresses; agents are spread over them
	Access                // of every agent
	Agents  int           // those that are cut off and return
	Senders int           // agents that stay and send; one for 200 agents if zero
	Missed  int           // parts of a stream that each agent misses meanwhile
	Size    int           // bytes of each; 100 if zero
	Dialing int           // agents that connect at a time; all at once if zero
	Spread  time.Duration // over which they begin to return, evenly; all in the same instant if zero
	Settle  time.Duration // how long each step may take
	Move    bool          // agents return to the next server

	// Stored returns once the servers have what was missed; nil: the last part of each stream asks for a receipt.
	Stored func(context.Context) error

	Live     int           // streams of other agents, which go on meanwhile and are measured
	LiveRate float64       // chunks a second of all these
	Calm     time.Duration // for which they are measured before the others are cut off, once these have been connected for as long; 5s if zero
}

// stormKind is the verb of a storm's result.
const stormKind = "storm"

func (c StormConfig) config() Config {
	senders := c.Senders
	if senders == 0 {
		senders = (c.Agents + 199) / 200
	}
	return Config{
		Kind: stormKind, System: c.System, Edges: c.Edges, Access: c.Access, Senders: senders, Receivers: c.Agents, Size: c.Size,
		Duration: 1, Settle: c.Settle,
	}
}

// Check tells what makes no sense, nil where all does.
func (c StormConfig) Check() error {
	switch {
	case c.Agents < 1 || c.Missed < 1:
		return errors.New("at least one agent must miss at least one part")
	case c.Senders < 0 || c.Dialing < 0:
		return errors.New("neither senders nor those that connect at a time can be below 0")
	case c.Live < 0 || c.Live > 0 && !(c.LiveRate > 0):
		return errors.New("streams that go on need a rate above 0")
	case c.Calm < 0:
		return errors.New("streams can't be measured for less than no time")
	case c.Settle <= 0:
		return errors.New("the time for each step must be above 0")
	}
	return c.config().Check()
}

// StormResult is what a storm came to. Times are in microseconds, from when the
// first agent tried to return.
type StormResult struct {
	Verb      string           `json:"verb"`
	Run       string           `json:"run"` // begins the ids of its agents
	Agents    int              `json:"agents"`
	Senders   int              `json:"senders"`
	Missed    int              `json:"missed_each"`
	Size      int              `json:"size"`
	Returned  int64            `json:"returned"`   // agents that are connected again
	Whole     int64            `json:"caught_up"`  // agents that have got all they missed
	Seconds   float64          `json:"duration_s"` // until the last had, or the time was up
	Expected  int64            `json:"expected"`   // arrivals
	Received  int64            `json:"received"`
	PerSecond float64          `json:"per_s"`
	Connected *Latency         `json:"connected_us"`
	CaughtUp  *Latency         `json:"caught_up_us"`
	Server    *Usage           `json:"server"` // null: not measured
	Client    Usage            `json:"client"`
	Live      *LiveResult      `json:"live,omitempty"` // null: no streams went on
	Twice     int64            `json:"duplicated"`
	Skipped   int64            `json:"missed"` // passed over by a later one
	Gaps      int64            `json:"gaps"`
	Cut       int64            `json:"lost_connections"`
	Errors    map[string]int64 `json:"errors,omitempty"`
	First     string           `json:"first_error,omitempty"`
	Lost      int64            `json:"-"` // arrivals that have not come
}

// Failed reports whether an agent has not got all that it missed, once and in order.
func (r StormResult) Failed() bool {
	return r.Whole != int64(r.Agents) || r.Twice > 0 || r.Skipped > 0 || r.Cut > 0 || r.Live != nil && r.Live.Lost > 0
}
