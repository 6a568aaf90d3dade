package edge

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Screen looks at what an agent says to another before it is stored: a whole request of JSON, or the beginning of a stream of it. It may give a request a name
// in m.Meta.Request where there is none, and changes nothing else. Its error is the answer to who says it.
type Screen func(ctx context.Context, by *Actor, m *agora.Message) error

// screens are those of the node's doors. The zero value is ready to use.
type screens struct{ all atomic.Pointer[[]Screen] }

// add adds one. It is called by one goroutine at a time.
func (s *screens) add(another Screen) {
	var all []Screen
	if old := s.all.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, another)
	s.all.Store(&all)
}

// check returns why a message of an actor may not be said. It has From and To.
func (s *screens) check(ctx context.Context, by *Actor, m *agora.Message) error {
	all := s.all.Load()
	if all == nil || m.Kind != agora.Request || m.Part > agora.Start || m.Media != "" {
		return nil
	}
	shown := *m // which a screen may keep: most messages are shown to none, and need not be allocated
	for _, look := range *all {
		if err := look(ctx, by, &shown); err != nil {
			return err
		}
	}
	m.Meta.Request = shown.Meta.Request
	return nil
}

// checkDepth returns an INVALID_REQUEST error for what is nested so deeply that no frame could bring it to its
// receiver: the frame itself counts as one of so many levels. It holds for what is said by every door, after that has
// put into a message what it has to. Events come from frames alone, which were held against it.
func checkDepth(m *agora.Message, levels int) error {
	if !m.To.IsSpace() && m.Media == "" && rawjson.Deeper(m.Body, levels-1) {
		return agora.Errorf(agora.InvalidRequest, "the payload is nested more than %d deep", levels-1)
	}
	return nil
}
