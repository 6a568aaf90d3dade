package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

// listing compares what edges list with who is connected.
type listing struct {
	ghosts  []string      // listed by an edge, or a member of a space, and not connected
	missing []string      // connected, and not listed by each edge
	after   time.Duration // after which there were neither, or the time that was given
}

// lists asks every edge whom it lists, until that are the agents of the load and nobody else, or the time is over.
func (c *cluster) lists(ctx context.Context, l *load, within time.Duration) (listing, error) {
	began := time.Now()
	for {
		edges, err := c.edges(ctx)
		if err != nil {
			return listing{}, err
		}
		got, err := compare(ctx, edges, l.run.Agents(), l.run.Spaces())
		got.after = time.Since(began)
		if err == nil && len(got.ghosts) == 0 && len(got.missing) == 0 || got.after >= within {
			return got, err
		}
		if !pause.For(ctx, time.Second) {
			return got, ctx.Err()
		}
	}
}

// compare asks edges for their agents, and for the members of spaces, which must be these.
func compare(ctx context.Context, edges, agents []string, spaces map[string]int) (listing, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var l listing
	for _, url := range edges {
		if err := l.ask(ctx, url, agents, spaces); err != nil {
			return l, fmt.Errorf("%s: %w", url, err)
		}
	}
	slices.Sort(l.ghosts)
	slices.Sort(l.missing)
	l.ghosts, l.missing = slices.Compact(l.ghosts), slices.Compact(l.missing)
	return l, nil
}

// ask adds what one edge lists wrongly.
func (l *listing) ask(ctx context.Context, url string, agents []string, spaces map[string]int) error {
	nobody, err := client.Dial(ctx, client.Config{URLs: []string{url}})
	if err != nil {
		return err
	}
	defer nobody.Close()
	there, err := nobody.Agents(ctx)
	if err != nil {
		return err
	}
	missing := slices.Clone(agents)
	for _, a := range there {
		if i := slices.Index(missing, string(a.ID)); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		} else {
			l.ghosts = append(l.ghosts, string(a.ID))
		}
	}
	l.missing = append(l.missing, missing...)
	all, err := nobody.Spaces(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch n := s.Members - spaces[s.Name]; {
		case n > 0:
			l.ghosts = append(l.ghosts, fmt.Sprintf("%d in %s", n, s.Name))
		case n < 0:
			l.missing = append(l.missing, fmt.Sprintf("%d in %s", -n, s.Name))
		}
	}
	return nil
}
