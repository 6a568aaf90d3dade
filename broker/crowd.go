package broker

import (
	"time"

	"github.com/agora-relay/agora"
)

// youngFor is how long other servers may take to learn that a subject is subscribed.
const youngFor = 700 * time.Millisecond

// crowd returns that of a stream; mu is held.
func (t *topics) crowd(stream string) *crowd {
	c := t.crowds[stream]
	if c == nil {
		c = &crowd{}
		t.crowds[stream] = c
	}
	return c
}

func (c *crowd) add(top *topic) {
	c.subjects++
	c.young = append(c.young, top)
}

// heard reports whether any subject of a stream is listened to.
func (t *topics) heard(stream string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.crowds[stream]
	return c != nil && c.subjects > 0
}

// comparison is how far the inboxes of a stream were compared with it.
type comparison struct {
	upTo uint64 // what was stored up to this sequence they have, but those that read the log then; 0 if that is not known
	anew int    // how often the stream was made anew, as far as was seen
}

func (t *topics) compared(stream string) comparison {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.crowds[stream]; c != nil {
		return c.compared
	}
	return comparison{}
}

// setCompared notes that they were, unless the stream was made anew since.
func (t *topics) setCompared(stream string, c comparison) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.crowd(stream); of.compared.anew == c.anew {
		of.compared = c
	}
}

// of returns the subjects of a stream that are listened to.
func (t *topics) of(stream string) []*topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []*topic
	for _, top := range t.m {
		if top.at.stream == stream {
			all = append(all, top)
		}
	}
	return all
}

// grown returns those subjects of a stream that were subscribed at least so long ago, each once.
func (t *topics) grown(stream string, young time.Duration) []*topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.crowds[stream]
	if c == nil {
		return nil
	}
	n, now := 0, agora.Ticks()
	for n < len(c.young) && time.Duration(now-c.young[n].since) >= young {
		n++
	}
	grown := c.young[:n:n]
	if c.young = c.young[n:]; len(c.young) == 0 {
		c.young = nil
	}
	return grown
}
