package broker

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// maxBeingStored is how many times the log may say that a record is being stored.
const maxBeingStored = 3

// advance sends the next record, unless there is nothing to send, a record is in flight, or the lane has to wait.
func (l *Lane) advance() {
	for l.state == laneActive && l.inflight == nil && l.turn != awaitsTurn {
		owes := l.ledger.OwesAborts() && !time.Now().Before(l.failures.abortAt) // for streams over a hole, and may be tried now
		if l.queue.first == nil && !owes {
			l.wakeWaiters()
			return
		}
		if !l.history.known {
			l.startRecovery(false)
			return
		}
		if l.waits() {
			return
		}
		at, ok := l.cfg.valid(l.b.clock.Now())
		f := l.fill(at, ok)
		if f.record.Parts() == 0 {
			if len(f.items) == 0 { // what is owed waits for the lease
				f.release()
				l.watch()
				return
			}
			l.answer(f, 0)
			continue
		}
		l.inflight = f
		l.b.coalescer.inFlight.Add(1)
		if f.stores && !l.stream.mayStore(party{l.cfg.To.Tenant, l.cfg.Payer}, l.at.Live, len(f.record.Bytes())) {
			l.watch() // for what it may come to owe
			l.notStored(errShare())
			continue
		}
		l.send(f)
		return
	}
}

// fill makes a record of the items that have gathered, as many as it has room for. Without a valid lease it refuses
// them all.
func (l *Lane) fill(at time.Time, ok bool) *batch {
	f, now := l.queue.pop(), time.Now()
	if f == nil {
		f = newBatch()
	}
	f.validAt = at
	f.record.Begin(record.Origin{Session: l.cfg.Session, Epoch: l.cfg.Epoch, ValidAt: at.UnixMilli(), From: l.cfg.From})
	l.ledger.Begin()
	f.reserved = true
	if ok && l.ledger.OwesAborts() { // first what is owed to streams over a hole
		for _, name := range l.ledger.NextAborts() {
			f.abort(&l.ledger, name, l.cfg.Epoch)
		}
	}
	n := 0
	for ; f.record.Parts() < record.MaxParts && (n < len(f.items) || l.queue.moveFirst(f)); n++ {
		it := &f.items[n]
		if ok && f.record.Parts() > 0 && len(f.record.Bytes())+it.room > recordBytes {
			break
		}
		l.queued -= it.room
		it.part = f.record.Parts()
		it.verdict = l.judge(it, ok, now)
		if it.verdict.Store {
			f.stores = true
			f.record.Add(&it.m)
		} else if it.verdict.Abort {
			f.abort(&l.ledger, it.m.Stream, l.cfg.Epoch)
		}
	}
	if n < len(f.items) {
		l.queue.pushFront(f.split(n))
	}
	return f
}

// judge decides whether an item is stored, is a duplicate, or is refused.
func (l *Lane) judge(it *item, ok bool, now time.Time) ledger.Verdict {
	if it.lost || !ok {
		l.ledger.Lose(&it.m)
		return ledger.Verdict{Err: ledger.Unavailable(nil)}
	}
	err := record.CheckMeta(&it.m.Meta)
	if err == nil {
		err = l.b.frames.check(&it.m)
	}
	if limit := l.b.log.MaxRecord(); err == nil && it.room+l.origin > limit {
		err = jslog.TooLarge(limit)
	}
	if err != nil {
		l.ledger.Pass(it.m.N)
		open := ledger.IsStreamPart(&it.m) && l.ledger.IsRunning(it.m.Stream)
		return ledger.Verdict{Err: err, Abort: open}
	}
	v := l.ledger.Take(&it.m, it.part, l.cfg.Epoch, now)
	if v.Err != nil && v.Err.Code == agora.Unavailable {
		l.ledger.Lose(&it.m)
	}
	return v
}

// recordIDs numbers records.
type recordIDs struct {
	last atomic.Uint64
	life string // random, of one Broker alone: begins every message id of its records
}

// next returns a number and its message id, which no other record has, of whatever edge.
func (r *recordIDs) next() (n uint64, id string) {
	n = r.last.Add(1)
	var room [48]byte
	b := append(append(room[:0], r.life...), '.')
	return n, string(strconv.AppendUint(b, n, 36))
}

// send sends a record for the first time.
func (l *Lane) send(f *batch) {
	n, id := l.b.ids.next()
	f.id = id
	f.msg.Subject = l.subject
	f.msg.Reply = l.b.lanes.replyTo(l.number, n)
	f.msg.Data = f.record.Bytes()
	f.msg.Header[jslog.MessageID][0] = f.id
	if guard.Fences {
		f.msg.Header[jslog.ExpectedLast][0] = strconv.FormatUint(l.fence.seq, 10)
		f.msg.Header[jslog.ExpectedSubject][0] = l.fence.subject
	}
	f.first = time.Now()
	l.publish(f)
}

// publish sends a record, the first time or again: the same bytes under the same id.
func (l *Lane) publish(f *batch) {
	f.last = time.Now()
	if !guard.IDs && f.tries > 0 {
		_, f.id = l.b.ids.next()
		f.msg.Header[jslog.MessageID][0] = f.id
	}
	if err := l.b.nc.PublishMsg(&f.msg); err == nil {
		f.tries++ // else it did not leave: the retrier tries again
	}
	l.watch()
}

// onAck takes the server's answer to a record to its lane, which sends the next one.
func (b *Broker) onAck(m *nats.Msg) {
	l := b.lanes.ofReply(m.Subject)
	if l == nil {
		return
	}
	a, err := jslog.ParseAck(m)
	if err != nil {
		b.cfg.Log.Warn("publish", "stream", l.at.Stream, "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.inflight
	if f == nil || f.msg.Reply != m.Subject || l.state != laneActive {
		return
	}
	switch {
	case a.Absent:
		f.tries-- // nobody took that copy
		l.stream.stores.refused()
		l.stream.ask(checkLeader)
		f.last = time.Now().Add(jslog.RetryPause - b.cfg.Retry)
	case a.Err != nil:
		l.turnedDown(a)
	case b.clock.Now().Sub(f.validAt) > record.DoubtAfter:
		l.startRecovery(false) // readers may skip it: what the log says counts
	default:
		l.stored(a)
	}
	l.advance()
	l.tell()
}

// turnedDown handles an error of the log's about the record in flight.
func (l *Lane) turnedDown(a jslog.Ack) {
	f := l.inflight
	switch {
	case a.Fenced():
		l.startRecovery(true)
	case a.Refused():
		l.stream.stores.refused()
		if f.refused++; f.refused >= f.tries {
			l.notStored(jslog.Full())
		}
	default:
		l.b.cfg.Log.Warn("publish", "stream", l.at.Stream, "err", a.Err)
		if a.Err.ErrorCode != jslog.CodeDuplicateOnWay {
			l.stream.stores.refused()
		} else if f.beingStored++; f.beingStored >= maxBeingStored { // its leader may never finish it: the fence settles that
			l.startRecovery(false)
		}
	}
}

// landed takes the record out of flight: its fate is known, or the lane is over.
func (l *Lane) landed() *batch {
	f := l.inflight
	l.inflight = nil
	l.b.coalescer.inFlight.Add(-1)
	return f
}

// stored answers the record in flight.
func (l *Lane) stored(a jslog.Ack) {
	f, now := l.landed(), time.Now()
	if l.stuck.Load() {
		l.stuck.Store(false)
	}
	l.stream.stores.stored()
	if f.tries == 1 {
		l.b.coalescer.observe(now.Sub(f.first))
	}
	l.ledger.Commit(a.Seq, now, l.b.cfg.Duplicates)
	l.history.last = a.Seq
	l.b.count.records.Add(1)
	l.b.count.parts.Add(uint64(f.record.Parts()))
	if len(f.items) > 0 {
		l.b.count.toStored.Observe(time.Duration(agora.Ticks() - f.since))
	}
	if a.Duplicate {
		l.b.nudge(l.at, a.Seq)
	}
	l.b.tails.note(l.at, a.Seq, now)
	l.answer(f, a.Seq)
}

// notStored answers the record in flight, of which nothing is stored and never will be: the log was full, or the sender
// has stored more than its share.
func (l *Lane) notStored(why *agora.Error) {
	f := l.landed()
	l.ledger.Rollback()
	l.failures.abortAt = time.Now().Add(ledger.RetryAfter)
	for i := range f.items {
		it := &f.items[i]
		// What an abort in the record refused permanently may come again, as the abort is not stored.
		if it.verdict.Store || it.lost || it.verdict.At.Here || it.verdict.Err != nil && len(f.aborts) > 0 {
			it.verdict = ledger.Verdict{Err: why}
		}
	}
	l.answer(f, 0)
}

// answer settles the items of a record stored at seq, and has their senders told.
func (l *Lane) answer(f *batch, seq uint64) {
	for i := range f.items {
		it := &f.items[i]
		if it.toldOff() {
			l.ledger.Resolve(&it.m, ledger.Stored, time.Time{})
		}
		v := &it.verdict
		switch {
		case v.Err != nil:
			l.b.count.refusals.Add(1)
		case v.Again:
			l.b.count.duplicates.Add(1)
		default:
			continue
		}
		switch { // a rollback may have undone what the ledger knew of it
		case v.Err != nil && v.Err.Code == agora.Unavailable:
			l.ledger.Lose(&it.m)
		case it.toldOff(): // nothing is stored under its number, and its sender is to send it again
			l.ledger.Lose(&agora.Message{N: it.m.N})
		default:
			l.ledger.Pass(it.m.N)
		}
	}
	if f.seq = seq; len(f.items) > 0 {
		l.completions.push(f)
	} else {
		f.release() // of aborts alone
	}
}
