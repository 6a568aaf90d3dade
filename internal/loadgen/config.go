package loadgen

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Kinds of load.
const (
	Stream  = "stream"  // parts of streams, each from one agent to another at another edge
	OneShot = "oneshot" // messages with receipts, likewise
	FanOut  = "fanout"  // events in one space, to all its members
)

// Config says what a run does. Kind is required, and System or Edges.
type Config struct {
	Kind      string
	System    System   // what carries it; Agora, with the three fields below, if nil
	Edges     []string // WebSocket addresses; agents are spread over them
	Access             // of every agent
	Ack       bool     // receivers acknowledge what they get, as the Go client does
	Senders   int      // 50 if zero; of a space: 1, members that publish
	Receivers int      // as many as there are senders if zero; of a space: members, publishers included, 100 if zero
	Rate      float64  // messages a second, of all senders together; 0: as fast as they come through
	Window    int      // messages under way on a line, where the rate is 0; 128 if zero
	Burst     int      // of these, how many can be sent before a sender that has waited continues; half of them if zero
	Everyone  bool     // an event is under way until every member has it; else until one at each server has
	Size      int      // bytes of a message's text, at least StampSize; 100 if zero

	Warmup   time.Duration // of sending, before it is measured
	Duration time.Duration // what is measured
	Settle   time.Duration // how long to wait at the end for what is under way
}

func (c Config) withDefaults() Config {
	senders, receivers := 50, 0
	if c.Kind == FanOut {
		senders, receivers = 1, 100
	}
	c.Senders = cmp.Or(c.Senders, senders)
	c.Receivers = cmp.Or(c.Receivers, receivers, c.Senders)
	c.Window = cmp.Or(c.Window, 128)
	c.Burst = min(cmp.Or(c.Burst, (c.Window+1)/2), c.Window)
	c.Size = cmp.Or(c.Size, 100)
	if c.System == nil {
		a := Agora{Edges: c.Edges, Access: c.Access}
		if c.Ack {
			a.Acks = AcksOfClients
		}
		c.System = a
	}
	return c
}

// maxLines is how many lines a stamp can tell apart.
const maxLines = 1 << (6 * lineDigits)

// Check tells what makes no sense, nil where all does.
func (c Config) Check() error {
	c = c.withDefaults()
	if err := checkSystem(c.System); err != nil {
		return err
	}
	switch {
	case c.Senders < 0 || c.Receivers < 0 || max(c.Senders, c.Receivers) >= maxLines:
		return errors.New("there can't be so many agents")
	case c.Kind == FanOut && c.Senders > c.Receivers:
		return errors.New("publishers are members: there can't be more of them")
	case !(c.Rate >= 0) || c.Rate > 1e8:
		return errors.New("the rate must not be below 0, nor above 100 million")
	case c.Window < 1 || c.Burst < 1:
		return errors.New("at least one message must be under way")
	case c.Size < StampSize:
		return fmt.Errorf("messages need at least %d bytes, for their number and time", StampSize)
	case c.Warmup < 0 || c.Duration <= 0 || c.Settle < 0:
		return errors.New("the duration must be above 0, and the times before and after it not below")
	}
	return nil
}

func checkSystem(s System) error {
	if s.Servers() == 0 {
		return errors.New("no address of an edge is given")
	}
	if a, ok := s.(Agora); ok {
		for _, e := range a.Edges {
			if _, err := (Target{Edge: e}).parse(); err != nil {
				return err
			}
		}
	}
	return nil
}
