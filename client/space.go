package client

import (
	"context"
	"iter"
	"slices"

	"github.com/agora-relay/agora/wire"
)

// Space is a space that the client is a member of. It stays one through
// reconnects, until Leave or the end of the client.
type Space struct {
	sender *sender
	name   string
	limit  int             // bytes that wait, beyond which events are dropped, to be fetched again
	forget func(why error) // takes it off those that the client is in, and ends it
	log    inlog

	// The log's lock guards these.
	queue   queue[*Event]
	members []string
	rejoin  string // id of the join that fetches what was dropped, or that makes a new session a member
	refused int    // how often that was refused for the moment
	history bool   // the position is that of the first event
}

// JoinOptions say where a member begins. Zero: with what is published from now
// on, or where State says that an earlier run left off.
type JoinOptions struct {
	LastSeq uint64 // first replay what came after this position
	History int    // first replay that many events
}

// Join makes the client a member of a space and returns it. Joining again
// returns the same Space.
func (c *Client) Join(ctx context.Context, space string, opts ...JoinOptions) (*Space, error) {
	s, where := c.spaces.enlist(space, opts)
	if _, err := c.sender.call(ctx, where); err != nil {
		s.forget(err)
		return nil, err
	}
	return s, nil
}

// Name returns the space's name.
func (s *Space) Name() string { return s.name }

// Members returns who is in the space, the client included, as far as it has heard.
func (s *Space) Members() []string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.Clone(s.members)
}

// Leave ends the membership.
func (s *Space) Leave(ctx context.Context) error {
	if _, err := s.sender.call(ctx, &wire.Frame{Type: "space.leave", Space: s.name}); err != nil {
		return err
	}
	s.forget(ErrLeft)
	return nil
}

// Events yields what happens in the space, in order: events, and changes of
// the roster. A streamed event is yielded at its first part. It ends with an error, always:
// that of ctx, [ErrLeft], or why the client is over.
func (s *Space) Events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for {
			e, err := take(ctx, &s.log, &s.queue)
			if err != nil {
				yield(nil, err)
				return
			}
			ok := yield(e, nil)
			s.log.done(e.ticket, e.in)
			if !ok {
				return
			}
		}
	}
}
