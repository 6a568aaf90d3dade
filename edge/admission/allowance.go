package admission

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/presence"
)

// allowance is what this edge may let an agent say by requests without asking presence, which counts what the agent
// says so at all edges. The zero value is nothing.
type allowance struct {
	mu       lock.Mutex // guards the fields below, and is held while presence is asked: for one agent, one question at a time
	of       *Effective // the limits under which it was taken
	messages float64
	bytes    float64
	until    int64 // in ticks: what is left then is lost
	away     int64 // in ticks: presence could not be asked, and is not before that
}

const (
	allowedFor   = time.Second // what an edge has taken for an agent that says no more is soon nobody's
	allowedShare = 16          // part of a bucket that is taken at once: no more than one in so many messages asks presence
)

// take takes a message of n bytes, and returns after how long there is room for it where there is none now. ok is false
// while presence can't be asked.
func (w *allowance) take(ctx context.Context, rates *RateLimiter, at agora.Address, l *Effective, n int) (after time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, size := agora.Ticks(), min(float64(n), l.bytes.burst)
	if w.of != l || now >= w.until {
		w.of, w.messages, w.bytes = l, 0, 0
	}
	if w.messages < 1 || w.bytes < size {
		if now < w.away {
			return 0, false
		}
		needs := [2]float64{max(0, 1-w.messages), max(0, size-w.bytes)}
		asking, cancel := context.WithTimeout(ctx, rates.answer)
		defer cancel()
		m, b, wait, err := rates.presence.Quotas.Spend(asking, at.Tenant, at.Agent, spending(l.messages, needs[0]), spending(l.bytes, needs[1]))
		if err != nil {
			if ctx.Err() == nil {
				w.away = now + int64(allowedFor)
			}
			return 0, false
		}
		if wait > 0 {
			return wait, true
		}
		w.messages, w.bytes, w.until = w.messages+float64(m), w.bytes+float64(b), now+int64(allowedFor)
	}
	w.messages, w.bytes = w.messages-1, w.bytes-size
	return 0, true
}

// give puts back a message that was taken in vain.
func (w *allowance) give(l *Effective, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == l {
		w.messages, w.bytes = w.messages+1, w.bytes+min(float64(n), l.bytes.burst)
	}
}

// spending is what is taken of a bucket where there is need for some.
func spending(r rate, need float64) presence.Spending {
	s := presence.Spending{Rate: r.perSecond, Room: r.burst, Need: int64(need)}
	s.Want = max(s.Need, int64(r.burst/allowedShare))
	return s
}
