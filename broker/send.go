package broker

import (
	"strconv"
	"strings"
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

// advance sends the next record if there is one to send and nothing stands in the way.
func (l *Lane) advance() {
	if !l.coalesces() {
		l.proceed()
	}
}

// proceed does that without waiting for other lanes.
func (l *Lane) proceed() {
	for l.state == active && l.inflight == nil && l.recovery == nil {
		owes := l.ledger.OwesAborts() && !time.Now().Before(l.failures.abortAt) // for streams over a hole, and may be tried now
		if l.queue.empty() && !owes {
			l.wakeWaiters()
			return
		}
		if !l.history.known {
			l.startRecovery(false)
			return
		}
		if waits, begun := l.pace.waits(); waits {
			if begun {
				l.watch()
			}
			return
		}
		at, ok := l.cfg.valid(l.b.Now())
		f := inflightPool.Get().(*inflightRecord)
		l.fill(f, at, ok)
		if len(f.parts) > 0 {
			l.inflight = f
			if f.stores() && !l.b.mayStore(party{l.cfg.To.Tenant, l.cfg.Payer}, &l.at, f.record.Size()) {
				l.watch() // for what it may come to owe
				l.notStored(errShare())
				return
			}
			f.counter = &l.b.coalescer.inFlight
			f.counter.Add(1)
			l.send()
			return
		}
		nothing := len(f.items) == 0
		l.answer(f, 0)
		f.release()
		if nothing { // what is owed waits for the lease
			l.watch()
			return
		}
	}
}

// fill makes a record of what is gathered. Without a valid lease it stores nothing: all is refused.
func (l *Lane) fill(f *inflightRecord, at time.Time, ok bool) {
	now := time.Now()
	o := record.Origin{Session: l.cfg.Session, Epoch: l.cfg.Epoch, ValidAt: at.UnixMilli(), From: l.cfg.From}
	f.validAt = at
	f.record.Begin(o)
	l.ledger.Begin()
	f.open = true
	if ok { // first what is owed to streams over a hole
		for _, name := range l.ledger.NextAborts() {
			f.abort(&l.ledger, name, l.cfg.Epoch)
		}
	}
	taken, bytes := 0, 0
	f.since = l.queue.since
	for queue := l.queue.items(); taken < len(queue) && len(f.parts) < record.MaxParts; {
		e := &queue[taken]
		size := record.SizeOf(&e.m)
		if ok && len(f.parts) > 0 && f.record.Size()+size > recordBytes {
			break
		}
		v := l.judge(e, ok, len(f.parts), size, now)
		f.items = append(f.items, item{entry: *e, v: v, part: len(f.parts)})
		if v.Store {
			f.add(e.m)
		} else if v.Abort {
			f.abort(&l.ledger, e.m.Stream, l.cfg.Epoch)
		}
		bytes += size
		taken++
	}
	l.queue.shift(taken, bytes)
}

// judge decides what becomes of a gathered part.
func (l *Lane) judge(e *entry, ok bool, index, size int, now time.Time) ledger.Verdict {
	if e.lost || !ok {
		l.ledger.Lose(&e.m)
		return ledger.Verdict{Err: ledger.Unavailable(nil)}
	}
	err, limit := record.CheckMeta(&e.m.Meta), l.b.MaxRecord()
	if err == nil {
		err = l.b.frames.check(&e.m)
	}
	if err == nil && size+record.OriginSize(record.Origin{Session: l.cfg.Session, From: l.cfg.From}) > limit {
		err = jslog.TooLarge(limit)
	}
	if err != nil {
		l.ledger.Pass(e.m.N)
		open := ledger.IsStreamPart(&e.m) && l.ledger.IsOpen(e.m.Stream)
		return ledger.Verdict{Err: err, Abort: open}
	}
	v := l.ledger.Take(&e.m, index, l.cfg.Epoch, now)
	if v.Err != nil && v.Err.Code == agora.Unavailable {
		l.ledger.Lose(&e.m)
	}
	return v
}

// send sends the record for the first time.
func (l *Lane) send() {
	f := l.inflight
	n := l.b.ids.next()
	f.id = l.b.ids.of(n)
	f.msg.Subject = l.subject
	f.msg.Reply = l.b.lanes.acks + l.number + "." + strconv.FormatUint(n, 36)
	f.msg.Data = f.record.Bytes()
	f.msg.Header[jslog.MessageID][0] = f.id
	if guard.Fences {
		f.msg.Header[jslog.ExpectedLast][0] = strconv.FormatUint(l.fence.seq, 10)
		f.msg.Header[jslog.ExpectedSubject][0] = l.fence.subject
	}
	f.first = time.Now()
	l.publish(f)
}

// publish sends the record, the first time or again: the same bytes under the same id.
func (l *Lane) publish(f *inflightRecord) {
	f.last = time.Now()
	if !guard.IDs && f.tries > 0 {
		f.id = l.b.ids.of(l.b.ids.next())
		f.msg.Header[jslog.MessageID][0] = f.id
	}
	if err := l.b.nc.PublishMsg(&f.msg); err == nil {
		f.tries++ // else it did not leave: the retrier tries again
	}
	l.watch()
}

// onAck takes the server's answer to a record to its lane.
func (b *Broker) onAck(m *nats.Msg) {
	name, _, ok := strings.Cut(m.Subject[len(b.lanes.acks):], ".")
	n, err := strconv.ParseUint(name, 36, 64)
	if !ok || err != nil {
		return
	}
	l := b.lanes.of(n)
	if l == nil {
		return
	}
	a, err := jslog.ParseAck(m)
	if err != nil {
		b.cfg.Log.Warn("publish", "stream", l.at.Stream, "err", err)
		return
	}
	l.acked(m.Subject, a)
}

// acked goes on after an answer.
func (l *Lane) acked(reply string, a jslog.Ack) {
	l.mu.Lock()
	f := l.inflight
	if f == nil || f.msg.Reply != reply || l.recovery != nil || l.state != active {
		l.mu.Unlock()
		return
	}
	switch {
	case a.Absent:
		l.b.watchers.refused(l.at.Stream)
		f.tries-- // nobody took that copy
		l.b.watchers.nobody(l.at.Stream)
		f.last = time.Now().Add(jslog.RetryPause - l.b.cfg.Retry)
	case a.Fenced():
		l.startRecovery(true)
	case a.Refused():
		l.b.watchers.refused(l.at.Stream)
		if f.refused++; f.refused >= f.tries {
			l.notStored(jslog.Full())
		}
	case a.Err != nil:
		l.b.cfg.Log.Warn("publish", "stream", l.at.Stream, "err", a.Err)
		if a.Err.ErrorCode != jslog.CodeDuplicateOnWay {
			l.b.watchers.refused(l.at.Stream)
		} else if f.beingStored++; f.beingStored >= maxBeingStored { // its leader may never finish it: the fence settles that
			l.startRecovery(false)
		}
	case l.b.Now().Sub(f.validAt) > record.DoubtAfter:
		l.startRecovery(false) // readers may skip it: what the log says counts
	default:
		l.stored(a)
	}
	l.mu.Unlock()
	l.deliver()
}

// stored answers the record and goes on.
func (l *Lane) stored(a jslog.Ack) {
	f := l.inflight
	if l.stuck.Load() {
		l.stuck.Store(false)
	}
	l.b.watchers.stored(l.at.Stream)
	now := time.Now()
	if f.tries == 1 {
		l.b.coalescer.observe(now.Sub(f.first))
	}
	l.ledger.Commit(f.parts, a.Seq, now, l.b.cfg.Duplicates)
	f.open = false
	l.history.last = a.Seq
	l.b.count.records.Add(1)
	l.b.count.parts.Add(uint64(len(f.parts)))
	if len(f.items) > 0 {
		l.b.count.toStored.Observe(time.Duration(agora.Ticks() - f.since))
	}
	if a.Duplicate {
		l.b.nudge(l.at, a.Seq)
	}
	l.b.tails.note(l.at, a.Seq, now)
	l.inflight = nil
	l.answer(f, a.Seq)
	f.release()
	l.advance()
}

// notStored answers a record that the full log refused, or that was not sent as its sender has stored too much: nothing of it is stored, and never will be.
func (l *Lane) notStored(why *agora.Error) {
	f := l.inflight
	l.ledger.Rollback(f.parts)
	l.inflight = nil
	l.failures.abortAt = time.Now().Add(ledger.RetryAfter)
	for i := range f.items {
		it := &f.items[i]
		// What was refused for good because of an abort is so no more.
		if it.v.Store || it.lost || it.v.At.Here || it.v.Err != nil && f.aborts {
			l.ledger.Lose(&it.m)
			it.v = ledger.Verdict{Err: why}
		}
	}
	l.answer(f, 0)
	f.release()
	l.advance()
}

// answer tells what became of the items of a record stored at seq.
func (l *Lane) answer(f *inflightRecord, seq uint64) {
	for i := range f.items {
		it := &f.items[i]
		if it.toldOff() {
			l.ledger.Forsake(&it.m)
		}
		r := it.result()
		switch {
		case it.v.Err != nil:
			r.Err = it.v.Err
			l.b.count.refusals.Add(1)
			l.settleNumber(it)
		case it.v.Again:
			r.Again, r.Stream, r.Seq = true, it.v.At.Stream, it.v.At.Position(seq)
			l.b.count.duplicates.Add(1)
			l.settleNumber(it)
		default:
			r.Seq = seq<<agora.SeqShift | uint64(it.part)
		}
		l.results.add(it.done, r)
	}
}

// settleNumber has the lane wait for the number of an item that is answered and was not stored, if its sender was told to send it again, and
// not otherwise. The ledger may have been taken back meanwhile to what it was before the item came.
func (l *Lane) settleNumber(it *item) {
	if it.toldOff() || it.v.Err != nil && it.v.Err.Code == agora.Unavailable {
		l.ledger.Disprove(&agora.Message{N: it.m.N})
		return
	}
	l.ledger.Pass(it.m.N)
}
