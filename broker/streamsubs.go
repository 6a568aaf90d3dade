package broker

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/audit"
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

// Compared returns how far the inboxes of a stream were compared with it.
func (t *dispatcher) Compared(stream string) audit.Comparison {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.streams[stream]; c != nil {
		return c.compared
	}
	return audit.Comparison{}
}

// SetCompared notes how far they were, unless the stream was made anew since.
func (t *dispatcher) SetCompared(stream string, c audit.Comparison) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.subsOf(stream); of.compared.Anew == c.Anew {
		of.compared = c
	}
}

// Subjects returns the subjects of a stream that are listened to.
func (t *dispatcher) Subjects(stream string) []audit.Subject { return subjectsOf(t.of(stream)) }

func subjectsOf(subs []*subscription) []audit.Subject {
	all := make([]audit.Subject, len(subs))
	for k, sub := range subs {
		all[k] = sub
	}
	return all
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

// Log returns the subject under which what is listened to is stored.
func (t *subscription) Log() string { return t.at.Log() }

// Compare compares the inboxes of the subject with its last record: see [audit.Subject].
func (t *subscription) Compare(last uint64, at time.Time, sure bool) (reading bool) {
	t.each(func(i *Inbox) {
		switch i.compare(last, at, sure) {
		case missedRecords:
			i.b.count.repaired.Add(1)
		case catchingUp:
			reading = true
		}
	})
	return reading
}

// matured returns those subjects of a stream that were subscribed at least so long ago, each once.
func (t *dispatcher) matured(stream string, young time.Duration) []audit.Subject {
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
	grown := subjectsOf(c.recent[:n])
	if c.recent = c.recent[n:]; len(c.recent) == 0 {
		c.recent = nil
	}
	return grown
}
