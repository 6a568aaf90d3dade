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
	c     *Client
	name  string
	limit int // bytes that wait, beyond which events are dropped, to be fetched again
	log   inlog

	// The log's lock guards these.
	queue   queue[*Event]
	members []string
	behind  bool   // events were dropped
	rejoin  string // id of the join that fetches them, or that makes a new session a member
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
	s, where := c.enlist(space, opts)
	_, err := c.call(ctx, where)
	if err != nil {
		c.forget(s, err)
		return nil, err
	}
	return s, nil
}

// enlist notes that events of a space are wanted, before they can come, and
// returns the question to ask.
func (c *Client) enlist(name string, opts []JoinOptions) (*Space, *wire.Frame) {
	q := &wire.Frame{Type: "space.join", Space: name}
	left, was := c.left()[name]
	s, fresh := c.place(name)
	if fresh && was && len(opts) == 0 {
		q.LastSeq, q.HasLastSeq = left, true
	}
	for _, o := range opts {
		q.LastSeq, q.HasLastSeq, q.History = o.LastSeq, o.LastSeq > 0, o.History
	}
	switch {
	case q.HasLastSeq:
		s.log.begin(q.LastSeq)
	case q.History > 0:
		s.log.mu.Lock()
		s.history = true
		s.log.mu.Unlock()
	}
	return s, q
}

// place returns the space of that name, made anew if there was none.
func (c *Client) place(name string) (s *Space, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.spaces[name]; s != nil {
		return s, false
	}
	s = newSpace(c, name)
	c.spaces[name] = s
	return s, true
}

func newSpace(c *Client, name string) *Space {
	s := &Space{c: c, name: name, limit: max(1, c.cfg.MaxBuffered/4), queue: newQueue[*Event]()}
	s.log = inlog{
		space: name, stall: c.cfg.Stall, wake: c.nudge, freed: s.freed,
		streams: map[streamKey]*inStream{},
	}
	return s
}

// space returns the space of that name that the client is in, or nil.
func (c *Client) space(name string) *Space {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spaces[name]
}

// forget ends a space.
func (c *Client) forget(s *Space, why error) {
	c.mu.Lock()
	if c.spaces[s.name] == s {
		delete(c.spaces, s.name)
	}
	c.mu.Unlock()
	s.finish(why)
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
	if _, err := s.c.call(ctx, &wire.Frame{Type: "space.leave", Space: s.name}); err != nil {
		return err
	}
	s.c.forget(s, ErrLeft)
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
			s.log.done(e.ticket)
			if !ok {
				return
			}
		}
	}
}
