package broker

import (
	"time"

	"github.com/agora-relay/agora"
)

// matureAfter is how long other servers may take to learn that a subject is subscribed.
const matureAfter = 700 * time.Millisecond

// subsOf returns what is listened to in a stream; mu is held.
func (t *dispatcher) subsOf(stream string) *streamSubs {
	c := t.streams[stream]
	if c == nil {
		c = &streamSubs{}
		t.streams[stream] = c
	}
	return c
}

func (c *streamSubs) add(sub *subscription) {
	c.subjects++
	c.recent = append(c.recent, sub)
}

// listening reports whether any subject of a stream is listened to.
func (t *dispatcher) listening(stream string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.streams[stream]
	return c != nil && c.subjects > 0
}

// comparison is how far the inboxes of a stream were compared with it.
type comparison struct {
	upTo uint64 // what was stored up to this sequence they have, but those that read the log then; 0 if that is not known
	anew int    // how often the stream was made anew, as far as was seen
}

func (t *dispatcher) compared(stream string) comparison {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.streams[stream]; c != nil {
		return c.compared
	}
	return comparison{}
}

// setCompared notes that they were, unless the stream was made anew since.
func (t *dispatcher) setCompared(stream string, c comparison) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.subsOf(stream); of.compared.anew == c.anew {
		of.compared = c
	}
}

// of returns the subjects of a stream that are listened to.
func (t *dispatcher) of(stream string) []*subscription {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []*subscription
	for _, sub := range t.m {
		if sub.at.Stream == stream {
			all = append(all, sub)
		}
	}
	return all
}

// matured returns those subjects of a stream that were subscribed at least so long ago, each once.
func (t *dispatcher) matured(stream string, young time.Duration) []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.streams[stream]
	if c == nil {
		return nil
	}
	n, now := 0, agora.Ticks()
	for n < len(c.recent) && time.Duration(now-c.recent[n].since) >= young {
		n++
	}
	grown := c.recent[:n:n]
	if c.recent = c.recent[n:]; len(c.recent) == 0 {
		c.recent = nil
	}
	return grown
}
