package edge

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// lifecycle is whether a session takes verbs here, and why it left. The zero value is that of one that does.
type lifecycle struct {
	mu       sync.Mutex // guards the fields below
	over     bool       // no verb is taken any more
	goodbye  bool       // the agent said so: the session ends without a grace
	deserted bool       // a verb found the socket or the claim gone: the session goes on elsewhere, or not at all
	why      Cause      // it left: the first one that was known
	stopped  int64      // ticks when it was over
}

// stop has no verb be taken any more; false where that was so before.
func (l *lifecycle) stop(goodbye bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over, l.goodbye, l.stopped = true, goodbye, agora.Ticks()
	return true
}

// ended reports whether the session takes no verb any more.
func (l *lifecycle) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// saidGoodbye reports whether the session has ended without a grace.
func (l *lifecycle) saidGoodbye() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goodbye
}

// overFor returns for how long the session has taken no verb; 0 where it does.
func (l *lifecycle) overFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return 0
	}
	return time.Duration(agora.Ticks() - l.stopped)
}

// away returns how much of a grace is left; 0 where it has not begun.
func (l *lifecycle) away(grace time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return 0
	}
	return max(grace-time.Duration(agora.Ticks()-l.stopped), time.Millisecond)
}

// leaves notes why the session leaves, and returns the reason: the first one counts.
func (l *lifecycle) leaves(why Cause) Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = cmp.Or(l.why, why)
	return l.why
}

// reason returns why the session left; zero where nobody has said so yet.
func (l *lifecycle) reason() Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// leavesHole reports whether the error of a part means that its stream must end.
// A numbered part is sent again wherever the session goes on: once the
// socket is gone here, or the claim, the stream is the successor's, and what is
// refused from then on is no news of it. A part without a number that is
// dropped here is missed by nobody. It is none once the session is over here.
func (l *lifecycle) leavesHole(ctx context.Context, n uint64, err error) bool {
	if err == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deserted = l.deserted || ctx.Err() != nil || errors.Is(err, presence.ErrDeposed)
	return !l.over && !(l.deserted && n > 0)
}
