package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/internal/pause"
)

// cutAll cuts connections of a run's clients, so many a second, until ctx ends.
func cutAll(ctx context.Context, n *faultnet.Link, rate float64) {
	for p := newPacer(rate); p.wait(ctx); {
		n.CutOne()
	}
}

// pacer spaces out what is done so many times a second. One goroutine owns it.
type pacer struct {
	every time.Duration
	next  time.Time
}

func newPacer(rate float64) *pacer {
	every := time.Duration(float64(time.Second) / rate)
	return &pacer{every: every, next: time.Now().Add(rand.N(every + 1))}
}

// wait waits for the next time; it returns false when ctx ends. What was
// missed is made up for at once, but no more than a second's worth.
func (p *pacer) wait(ctx context.Context) bool {
	now := time.Now()
	if late := now.Add(-time.Second); p.next.Before(late) {
		p.next = late
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(p.every)
	return pause.For(ctx, d)
}
