package edge

import (
	"cmp"
	"sync"
	"time"

	"github.com/agora-relay/agora"
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

// goesOn reports whether what is refused now is for this edge to make up for: it is not once the session is over here. desert says that the socket
// or the claim was found gone: from then on a numbered frame is its successor's, where it is sent again.
func (l *lifecycle) goesOn(desert, numbered bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deserted = l.deserted || desert
	return !l.over && !(l.deserted && numbered)
}
