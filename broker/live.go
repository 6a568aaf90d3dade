package broker

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// liveRecord is a record that came by core NATS and is not decoded yet.
type liveRecord struct {
	seq   uint64
	last  uint64 // the one before it in its subject; 0 for none
	size  int
	parts int // that it holds
	m     *nats.Msg
}

// liveBuffer is the live records that an inbox keeps. Its inbox's lock guards it.
type liveBuffer struct {
	queue  []liveRecord // they follow what was read
	staged []liveRecord // they come behind what is being read, each following the one before it
	bytes  int          // of both
}

// keepQueue is how many places a drained queue keeps.
const keepQueue = 16

// stage keeps a record while the end of the log is being read, and returns how many it has dropped.
func (l *liveBuffer) stage(q liveRecord, room int) (dropped int) {
	if n := len(l.staged); n > 0 && (q.seq <= l.staged[n-1].seq) {
		return 0
	} else if n > 0 && (q.last != l.staged[n-1].seq || l.bytes+q.size > room) {
		dropped = l.unstage()
	}
	if l.bytes+q.size > room {
		return dropped + 1
	}
	l.staged = append(l.staged, q)
	l.bytes += q.size
	return dropped
}

// unstage drops the staged records, and returns how many there were.
func (l *liveBuffer) unstage() (dropped int) {
	for k := range l.staged {
		l.bytes -= l.staged[k].size
	}
	dropped = len(l.staged)
	l.staged = nil
	return dropped
}

// push queues a live record, if it follows and fits.
func (i *Inbox) push(m *nats.Msg, seq, last uint64) {
	i.mu.Lock()
	q := liveRecord{seq: seq, last: last, size: m.Size(), parts: record.Count(m.Data), m: m}
	room := int(i.b.dispatch.inboxBytes.Load())
	woken := false
	switch {
	case i.state == inboxClosed || seq <= i.end.seq:
	case i.state == inboxStages:
		i.drop(i.live.stage(q, room))
	case i.state == inboxLags:
		i.drop(1)
	case !i.follows(last) || i.live.bytes+q.size > room:
		i.drop(1)
		if !guard.Gaps {
			i.end.seq = seq
			break
		}
		woken = i.hears(inboxMisses)
	default:
		i.enqueue(q)
		woken = i.hears(inboxQueues)
	}
	i.end.highest = max(i.end.highest, seq)
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// follows reports whether nothing can be missing between what the inbox has and a live record behind the one given. A
// record that names an older one, or none, does not say so: the last one that was got has grown too old since, or it is
// of a log made again, of which no word has come yet. The lock is held.
func (i *Inbox) follows(last uint64) bool {
	return last == i.end.seq && (last != 0 || i.b.streams.confirmed(i.at.Stream))
}

// drop counts live records that the inbox has not kept.
func (i *Inbox) drop(n int) { i.b.count.dropped.Add(uint64(n)) }

// enqueue adds a record that follows the last one. The lock is held.
func (i *Inbox) enqueue(q liveRecord) {
	i.live.queue = append(i.live.queue, q)
	i.live.bytes += q.size
	i.end.seq, i.end.size, i.end.tail = q.seq, q.size+jslog.Headroom, q.seq<<agora.SeqShift|uint64(q.parts-1)
}

// join queues the staged records, if they follow what was read. The lock is held.
func (i *Inbox) join() {
	staged := i.live.staged
	for len(staged) > 0 && staged[0].seq <= i.end.seq {
		staged = staged[1:]
	}
	if len(staged) == 0 || !i.follows(staged[0].last) {
		return
	}
	i.live.unstage()
	for _, q := range staged {
		i.enqueue(q)
	}
}

// noteStored has the inbox read the log if it has not got the record at seq, which is stored.
func (i *Inbox) noteStored(seq uint64) {
	i.mu.Lock()
	woken := false
	if seq > i.end.seq && i.state != inboxClosed {
		i.end.highest = max(i.end.highest, seq)
		woken = i.hears(inboxMisses)
	}
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// markLagging has the inbox read the log.
func (i *Inbox) markLagging() {
	i.mu.Lock()
	woken := i.hears(inboxMisses)
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// compare hears what an audit that began at at found to be the last record of the subject: 0 for none. sure says
// that the answer is as new as the leader's was then.
func (i *Inbox) compare(last uint64, at time.Time, sure bool) comparisonResult {
	i.mu.Lock()
	if i.state == inboxClosed || i.state.lags() {
		defer i.mu.Unlock()
		if i.state == inboxClosed {
			return upToDate
		}
		return catchingUp
	}
	if last <= i.end.seq {
		if sure {
			i.complete.tail, i.complete.at = i.end.tail, at
		}
		i.mu.Unlock()
		return upToDate
	}
	i.mu.Unlock()
	i.noteStored(last)
	return missedRecords
}

// comparisonResult is what an audit finds out about an inbox.
type comparisonResult uint8

const (
	upToDate      comparisonResult = iota
	missedRecords                  // it reads the log now
	catchingUp                     // it does already, and the audit says nothing of it
)
