package broker

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// push queues a live record, if it follows and fits.
func (i *Inbox) push(m *nats.Msg, seq, last uint64) {
	i.mu.Lock()
	q := liveRecord{seq: seq, last: last, size: m.Size(), m: m}
	woken := false
	switch {
	case i.state == inboxClosed || seq <= i.end.seq:
	case i.state == inboxStages:
		i.drop(i.live.stage(q, i.room()))
	case i.state == inboxLags:
		i.drop(1)
	case !i.follows(last) || !i.live.hasRoom(q.size, i.room()):
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

// follows reports whether nothing can be missing between what the inbox has and a live record behind the one given. A record
// that names an older one, or none, does not say so: the last one that was got has grown too old since, or it is of a log made
// anew, of which no word has come yet. The lock is held.
func (i *Inbox) follows(last uint64) bool {
	return last == i.end.seq && (last != 0 || i.b.streams.confirmed(i.at.Stream))
}

// room is how many bytes of live records the inbox may keep.
func (i *Inbox) room() int { return int(i.b.dispatch.inboxBytes.Load()) }

// drop counts live records that the inbox has not kept.
func (i *Inbox) drop(n int) { i.b.count.dropped.Add(uint64(n)) }

// enqueue adds a record that follows the last one. The lock is held.
func (i *Inbox) enqueue(q liveRecord) {
	i.live.enqueue(q)
	i.end.seq, i.end.size, i.end.tail = q.seq, q.size+jslog.Headroom, q.seq<<agora.SeqShift|uint64(record.Count(q.m.Data)-1)
}

// join queues what is staged, if it follows what was read. The lock is held.
func (i *Inbox) join() {
	staged := i.live.stagedAfter(i.end.seq)
	if len(staged) == 0 || !i.follows(staged[0].last) {
		return
	}
	i.live.unstage()
	for _, q := range staged {
		i.enqueue(q)
	}
}

// noteStored has the inbox read the log when a record is stored that it has not got.
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

// markLagging has the log read.
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
