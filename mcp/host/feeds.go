package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	maxSpaces  = 64 // that a host is a member of
	rejoinWait = time.Second
)

// feeds are the spaces that the host is a member of, through all its connections.
type feeds struct {
	log *slog.Logger

	mu   sync.Mutex // guards the fields below
	all  map[string]*feed
	ctx  context.Context // of the present client; nil while there is none
	c    *client.Client
	work *sync.WaitGroup
}

// attach makes a client a member of all spaces. detach ends that, and waits for it.
func (s *feeds) attach(ctx context.Context, c *client.Client) (detach func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.c, s.work = ctx, c, &sync.WaitGroup{}
	for _, f := range s.all {
		s.start(f)
	}
	return func() {
		cancel()
		s.mu.Lock()
		work := s.work
		s.ctx, s.c = nil, nil
		s.mu.Unlock()
		work.Wait()
	}
}

// start joins a space and takes in its events. The lock is held.
func (s *feeds) start(f *feed) {
	ctx, c := s.ctx, s.c
	s.work.Go(func() {
		space, err := s.enter(ctx, c, f)
		f.joined(space, err)
		if err != nil {
			return
		}
		f.follow(ctx, space)
		f.joined(nil, nil)
	})
}

// enter joins a space, again and again while the cluster can't take the host in for the moment. A space that it can't
// be a member of is forgotten.
func (s *feeds) enter(ctx context.Context, c *client.Client, f *feed) (*client.Space, error) {
	for {
		space, err := c.Join(ctx, f.name, f.where())
		if err == nil {
			return space, nil
		}
		if e, ok := errors.AsType[*agora.Error](err); ok && e.Code != agora.Unavailable && e.Code != agora.Timeout && e.Code != agora.RateLimited {
			s.forget(f)
			s.log.Warn("a space could not be joined", "space", f.name, "err", err)
			return nil, err
		}
		if !pause.For(ctx, rejoinWait) {
			return nil, nil
		}
	}
}

func (s *feeds) forget(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[f.name] == f {
		delete(s.all, f.name)
	}
}

// join makes the host a member of a space and returns its feed; fresh reports that it was none. Its errors are for a
// model.
func (s *feeds) join(ctx context.Context, name string, history int) (f *feed, fresh bool, err error) {
	s.mu.Lock()
	f = s.all[name]
	switch {
	case f != nil:
	case len(s.all) == maxSpaces:
		s.mu.Unlock()
		return nil, false, fmt.Errorf("you are in %d spaces, which is all there may be: leave one first (agora_join with leave)", maxSpaces)
	default:
		f, fresh = newFeed(name, history), true
		s.all[name] = f
		if s.ctx != nil && s.ctx.Err() == nil {
			s.start(f)
		}
	}
	s.mu.Unlock()
	if ctx.Err() == nil {
		_ = f.until(ctx, func() bool { return f.space != nil || f.err != nil })
	}
	switch space, err := f.member(); {
	case err != nil:
		return nil, false, advised(fmt.Sprintf("space %.100q", name), err)
	case space == nil:
		return nil, false, fmt.Errorf("space %.100q is not joined yet: the cluster does not answer. You become a member as soon as it does: try again in some seconds", name)
	}
	return f, fresh, nil
}

// get returns the feed of a space that the host is a member of. Its error is for a model.
func (s *feeds) get(name string) (*feed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.all[name]; f != nil {
		return f, nil
	}
	if len(s.all) == 0 {
		return nil, fmt.Errorf("you are not a member of space %.100q: call agora_join first", name)
	}
	return nil, fmt.Errorf("you are not a member of space %.100q: call agora_join first (you are in: %s)", name, listed(s.sorted()))
}

// names returns the spaces that the host is a member of, or is to be.
func (s *feeds) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

func (s *feeds) sorted() []string {
	names := make([]string, 0, len(s.all))
	for name := range s.all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// leave ends a membership. Its errors are for a model.
func (s *feeds) leave(ctx context.Context, name string) error {
	f, err := s.get(name)
	if err != nil {
		return err
	}
	if space, _ := f.member(); space != nil {
		if err := space.Leave(ctx); err != nil {
			return advised(fmt.Sprintf("space %.100q", name), err)
		}
	}
	s.forget(f)
	return nil
}

// ended tells a normal end of a stream from a failure.
func ended(err error) bool { return err == io.EOF }
